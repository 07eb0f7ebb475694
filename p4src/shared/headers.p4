// Headers on the wire and the metadata that a packet carries through one switch.

#ifndef TRAINYARD_HEADERS_P4
#define TRAINYARD_HEADERS_P4

#include "constants.p4"

header ethernet_t {
    mac_address_t destination;
    mac_address_t source;
    bit<16>       ether_type;
}

header ipv4_t {
    bit<4>         version;
    bit<4>         header_length;    // in 32-bit words; 5 means no options
    dscp_t         dscp;             // bits 5..3: level, bits 2..0 pass unchanged
    bit<2>         ecn;
    bit<16>        total_length;
    bit<16>        identification;
    bit<3>         flags;
    bit<13>        fragment_offset;
    bit<8>         time_to_live;
    bit<8>         protocol;
    bit<16>        checksum;
    ipv4_address_t source;
    ipv4_address_t destination;
}

// The first four bytes of TCP and UDP alike: all that forwarding needs of either.
header ports_t {
    bit<16> source;
    bit<16> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {
    bit<16>     source_port;         // 0 where the packet has no ports of its own (fragments, IP options)
    bit<16>     destination_port;
    bit<32>     hash_multiplier;
    ecmp_hash_t ecmp_hash;
    next_hop_t  next_hop;            // 0: not chosen yet
    level_t     level;
}

#endif
