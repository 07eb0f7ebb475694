// Headers on the wire and the metadata that a packet carries through one switch.

#ifndef TRAINYARD_HEADERS_P4
#define TRAINYARD_HEADERS_P4

#include "constants.p4"
#include "ids.p4"
#include "int_headers.p4"

// Stands before a packet that the switch hands to the controller.
@controller_header("packet_in") @id(ID_PACKET_IN)
header packet_in_t {
    bit<9>          ingress_port;    // where it came in
    @padding bit<7> padding;
}

// Stands before a packet of the controller's own.
@controller_header("packet_out") @id(ID_PACKET_OUT)
header packet_out_t {
    bit<9>          egress_port;     // where it leaves, unchanged
    @padding bit<7> padding;
}

header ethernet_t {
    mac_address_t destination;
    mac_address_t source;
    bit<16>       ether_type;
}

header ipv4_t {
    bit<4>         version;
    bit<4>         header_length;    // in 32-bit words; 5 means no options
    dscp_t         dscp;
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

// IPv4 options, one to ten words of them, in pieces of as many words as the type says. Only the checksum reads them.
header options_8_t {
    bit<64> words_1;
    bit<64> words_2;
    bit<64> words_3;
    bit<64> words_4;
}

header options_4_t {
    bit<64> words_1;
    bit<64> words_2;
}

header options_2_t {
    bit<64> words;
}

header options_1_t {
    bit<32> word;
}

// The first four bytes of TCP and UDP alike: all that forwarding needs of either.
header ports_t {
    bit<16> source;
    bit<16> destination;
}

// UDP behind its ports; read only of packets that INT is announced in.
header udp_t {
    bit<16> length;
    bit<16> checksum;                // 0: none
}

// TCP behind its ports; read only of packets that INT is announced in.
header tcp_t {
    bit<32> sequence_number;
    bit<32> acknowledgement_number;
    bit<4>  data_offset;             // in 32-bit words; 5 means no options
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

struct headers_t {
    packet_in_t        packet_in;
    packet_out_t       packet_out;
    ethernet_t         ethernet;
    ipv4_t             ipv4;
    options_8_t        options_8;
    options_4_t        options_4;
    options_2_t        options_2;
    options_1_t        options_1;
    ports_t            ports;
    udp_t              udp;
    tcp_t              tcp;
    int_shim_t         int_shim;
    int_md_t           int_md;
    int_node_id_t      int_node_id;
    int_level1_ports_t int_level1_ports;
    int_hop_latency_t  int_hop_latency;
    int_queue_t        int_queue;
    int_time_t         int_ingress_time;
    int_time_t         int_egress_time;
    int_level2_ports_t int_level2_ports;
    int_utilisation_t  int_utilisation;
    int_filler_16_t    int_filler_16;
    int_filler_8_t     int_filler_8;
    int_filler_4_t     int_filler_4;
    int_filler_2_t     int_filler_2;
    int_filler_1_t     int_filler_1;
}

struct metadata_t {
    bit<16>       source_port;       // 0 where the packet has no ports of its own (fragments, IP options)
    bit<16>       destination_port;
    bit<32>       hash_multiplier;
    ecmp_hash_t   ecmp_hash;
    next_hop_t    next_hop;          // 0: not chosen yet
    level_t       level;
    bit<1>        is_probe;          // INT is announced and well-formed
    bit<1>        is_trusted;        // the ingress port's senders may choose a level by DSCP
    drop_reason_t drop_reason;
    bit<5>        content_words;     // that the instructions of a probe's bits 0..7 ask each hop for
    bit<5>        added_words;       // that this hop puts on the probe's stack: all of Hop ML, or none
    bit<32>       last_window_bytes; // that left by the egress port in its last complete window
    bit<32>       checksum_delta;    // one's complement sum of what this hop has changed in the L4 segment
}

#endif
