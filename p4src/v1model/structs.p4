// The headers that this target reads and writes, and the metadata that a packet carries through the switch.

#ifndef TRAINYARD_STRUCTS_P4
#define TRAINYARD_STRUCTS_P4

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
