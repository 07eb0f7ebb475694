// Headers on the wire.

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

#endif
