// In-band telemetry as INT 2.1 lays it out: what a probe brings, and what this switch puts on top of it.

#ifndef TRAINYARD_INT_HEADERS_P4
#define TRAINYARD_INT_HEADERS_P4

#include "constants.p4"

header int_shim_t {
    bit<4>  type;                    // 1: INT-MD
    bit<2>  next_protocol_type;      // 0: L4's payload follows the stack
    bit<2>  reserved;
    bit<8>  length;                  // INT-MD header and stack, in 32-bit words
    bit<16> next_protocol;
}

// The instruction bitmap, bit 0 first, asks for one word each, for two where a comment says so.
header int_md_t {
    bit<4>  version;                 // 2
    bit<1>  discard;                 // the sink drops the packet: every probe of ours
    bit<1>  hop_count_exceeded;      // E
    bit<1>  mtu_exceeded;            // M
    bit<12> reserved;
    bit<5>  hop_words;               // Hop ML: what each hop adds, in 32-bit words
    bit<8>  remaining_hop_count;
    bit<1>  wants_node_id;
    bit<1>  wants_level1_ports;
    bit<1>  wants_hop_latency;
    bit<1>  wants_queue;
    bit<1>  wants_ingress_time;      // two words
    bit<1>  wants_egress_time;       // two words
    bit<1>  wants_level2_ports;      // two words; answered with all ones
    bit<1>  wants_utilisation;
    bit<8>  wants_more;              // bits 8..15, answered with all ones
    bit<16> domain_id;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

header int_node_id_t {
    bit<32> node_id;
}

header int_level1_ports_t {
    bit<16> ingress;
    bit<16> egress;
}

header int_hop_latency_t {
    bit<32> microseconds;
}

header int_queue_t {
    bit<8>  queue_id;                // the level
    bit<24> occupancy;               // packets that waited there when this one came
}

header int_time_t {
    bit<64> microseconds;            // of this switch's clock
}

header int_level2_ports_t {
    bit<64> ports;
}

header int_utilisation_t {
    bit<32> window_bytes;            // that left by the egress port in the last complete window
}

// All ones where the hop owes words that it has no content for.
header int_filler_1_t {
    bit<32> word;
}

header int_filler_2_t {
    bit<64> words;
}

header int_filler_4_t {
    bit<64> words_1;
    bit<64> words_2;
}

header int_filler_8_t {
    bit<64> words_1;
    bit<64> words_2;
    bit<64> words_3;
    bit<64> words_4;
}

header int_filler_16_t {
    bit<64> words_1;
    bit<64> words_2;
    bit<64> words_3;
    bit<64> words_4;
    bit<64> words_5;
    bit<64> words_6;
    bit<64> words_7;
    bit<64> words_8;
}

#endif
