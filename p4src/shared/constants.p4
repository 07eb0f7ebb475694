// Types, sizes and numbers that every target shares.

#ifndef TRAINYARD_CONSTANTS_P4
#define TRAINYARD_CONSTANTS_P4

typedef bit<48> mac_address_t;
typedef bit<32> ipv4_address_t;
typedef bit<6>  dscp_t;              // bits 5..3: class, bits 2..1: not ours, bit 0: an INT shim follows L4
typedef bit<3>  level_t;             // 0 the least, 7 the most urgent
typedef bit<3>  class_t;             // what DSCP bits 5..3 say; class n is CSn
typedef bit<16> next_hop_t;          // a row of the next_hop table; 0 is never one
typedef bit<16> ecmp_hash_t;
typedef bit<8>  drop_reason_t;

const bit<16> ETHER_TYPE_IPV4 = 0x0800;
const bit<16> ETHER_TYPE_ARP  = 0x0806;
const bit<16> ETHER_TYPE_LLDP = 0x88CC;
const bit<8>  PROTOCOL_TCP    = 6;
const bit<8>  PROTOCOL_UDP    = 17;

const bit<9>  CPU_PORT        = 510; // the controller's end of packet-in and packet-out
const level_t CONTROL_LEVEL   = 7;   // of packets from and to the controller, which data must not starve

const bit<2>  METER_RED       = 2;   // what a meter says of packets above its peak rate

const dscp_t  DSCP_WITHOUT_INT = 0b111110;
const bit<2>  CONGESTION_EXPERIENCED = 0b11;

// Bytes, for lengths that stand in headers.
const bit<32> ETHERNET_BYTES   = 14;
const bit<32> IPV4_BYTES       = 20;
const bit<32> UDP_BYTES        = 8;
const bit<32> TCP_BYTES        = 20;
const bit<32> INT_SHIM_BYTES   = 4;
const bit<8>  INT_HEADER_WORDS = 3;
const bit<9>  INT_MAX_WORDS    = 255; // header and stack: the shim's length has eight bits

// INT-MD 2.1's first five bytes behind L4: shim type 1, next protocol type 0, and header version 2 behind the shim.
#define INT_MD_2 0x1000000020 &&& 0xFC000000F0

// What cannot be told is all ones (INT 2.1).
const bit<32> INVALID_32 = 0xFFFFFFFF;
const bit<64> INVALID_64 = 0xFFFFFFFFFFFFFFFF;

const bit<32> MINUS_ONE  = 0xFFFE;   // in one's complement of 16 bits

// Indexes of drop_counter.
const drop_reason_t DROP_NOTHING      = 0; // not dropped; never counted
const drop_reason_t DROP_MALFORMED    = 1; // no whole Ethernet header, or no whole IPv4 header where one is announced
const drop_reason_t DROP_ETHER_TYPE   = 2; // none of IPv4, ARP and LLDP
const drop_reason_t DROP_CHECKSUM     = 3; // IPv4's is wrong
const drop_reason_t DROP_TIME_TO_LIVE = 4; // would reach 0 here
const drop_reason_t DROP_NO_ROUTE     = 5; // routing knows no such destination
const drop_reason_t DROP_NO_NEXT_HOP  = 6; // next_hop lacks the row that flow or routing chose, or no member is live
const drop_reason_t DROP_PACKET_IN    = 7; // for the controller, but above the peak rate of its port's packet_in_meter

// How many rows and cells a target has to offer.
#define PORTS                512
#define FLOW_TABLE_SIZE      65536
#define JOB_TABLE_SIZE       1024
#define ROUTING_TABLE_SIZE   4096
#define NEXT_HOP_TABLE_SIZE  512
#define ECMP_MEMBERS         8192
#define ECMP_GROUP_SIZE      256
#define LEVEL_COUNTER_SIZE   4096    // port (9 bits) and level (3 bits)
#define DROP_COUNTER_SIZE    8

#endif
