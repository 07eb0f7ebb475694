// Types, sizes and numbers that every target shares.

#ifndef TRAINYARD_CONSTANTS_P4
#define TRAINYARD_CONSTANTS_P4

typedef bit<48> mac_address_t;
typedef bit<32> ipv4_address_t;
typedef bit<6>  dscp_t;
typedef bit<3>  level_t;             // 0 the least, 7 the most urgent
typedef bit<16> next_hop_t;          // a row of the next_hop table; 0 is never one
typedef bit<16> ecmp_hash_t;

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_TCP    = 6;
const bit<8>  PROTOCOL_UDP    = 17;

// How many rows a target has to offer.
#define FLOW_TABLE_SIZE      65536
#define ROUTING_TABLE_SIZE   4096
#define NEXT_HOP_TABLE_SIZE  512
#define ECMP_MEMBERS         8192
#define ECMP_GROUP_SIZE      256
#define LEVEL_COUNTER_SIZE   4096    // port (9 bits) and level (3 bits)

#endif
