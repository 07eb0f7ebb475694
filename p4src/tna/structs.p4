// What only this target has: numbers, headers in its units, and the metadata of its two halves.

#ifndef TRAINYARD_STRUCTS_P4
#define TRAINYARD_STRUCTS_P4

const PortId_t TOFINO_CPU_PORT = 192;       // PCIe of Tofino 1; v1model's CPU_PORT is no port here

// Ids of what v1model does not have.
#define ID_TABLE_ECMP            0x02000101
#define ID_ACTION_SET_ECMP_GROUP 0x01000101

// Groups and slots of the ECMP table: what the controller fills instead of a selector.
typedef bit<8>  ecmp_group_t;
typedef bit<10> ecmp_slot_t;
#define ECMP_TABLE_SIZE 65536

// Bytes that this target counts and v1model does not: the Ethernet FCS, and in egress the bridged header before it.
#define FCS_BYTES             4
#define BRIDGED_AND_FCS_BYTES 14

const bit<8> METER_COLOUR_RED = 3;

// Stands before a packet on its way from ingress to egress, never on a wire.
header bridged_t {
    bit<1>          is_opaque;              // from or to the controller: egress reads no header behind this one
    bit<1>          is_probe;
    @padding bit<6> padding_1;
    @padding bit<5> padding_2;
    level_t         level;
    bit<16>         ingress_port;
    bit<48>         ingress_time_ns;        // of this switch's clock
}

// INT words whose unit is the nanosecond here.
header int_hop_latency_ns_t {
    bit<32> nanoseconds;
}

header int_time_ns_t {
    bit<16> zero;
    bit<48> nanoseconds;                    // of this switch's clock
}

// The bytes behind L4 that tell INT-MD 2.1: shim type 1 with next protocol type 0, and header version 2.
header int_start_t {
    bit<8>  shim;
    bit<24> rest_of_shim;
    bit<8>  md;
}

struct ingress_headers_t {
    bridged_t    bridged;
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
    options_8_t  options_8;
    options_4_t  options_4;
    options_2_t  options_2;
    options_1_t  options_1;
    ports_t      ports;
    udp_t        udp;
    tcp_t        tcp;
    int_shim_t   int_shim;
    int_md_t     int_md;
}

struct ingress_metadata_t {
    bit<16>       source_port;              // 0 where the packet has no ports of its own (fragments, IP options)
    bit<16>       destination_port;
    bit<16>       int_words;                // INT-MD header and stack, as the shim says
    bit<32>       crc;
    bit<16>       ecmp_hash;
    ecmp_group_t  ecmp_group;
    ecmp_slot_t   ecmp_slot;
    bit<1>        has_ecmp_group;           // routing has chosen a group, not a next hop
    next_hop_t    next_hop;                 // 0: not chosen yet
    level_t       level;
    bit<1>        is_probe;                 // INT is announced and well-formed
    bit<1>        is_trusted;               // the ingress port's senders may choose a level by DSCP
    bool          has_wrong_checksum;       // of IPv4
    drop_reason_t drop_reason;
    bit<16>       ipv4_residual;            // sum of what no switch changes in the IPv4 header
}

struct egress_headers_t {
    bridged_t            bridged;
    ethernet_t           ethernet;
    ipv4_t               ipv4;
    ports_t              ports;
    udp_t                udp;
    tcp_t                tcp;
    int_shim_t           int_shim;
    int_md_t             int_md;
    int_node_id_t        int_node_id;
    int_level1_ports_t   int_level1_ports;
    int_hop_latency_ns_t int_hop_latency;
    int_queue_t          int_queue;
    int_time_ns_t        int_ingress_time;
    int_time_ns_t        int_egress_time;
    int_level2_ports_t   int_level2_ports;
    int_utilisation_t    int_utilisation;
    int_filler_16_t      int_filler_16;
    int_filler_8_t       int_filler_8;
    int_filler_4_t       int_filler_4;
    int_filler_2_t       int_filler_2;
    int_filler_1_t       int_filler_1;
}

// What the hop's INT words say, 0 where it adds none. Tofino 1 sums a field also while its header is invalid, so the
// L4 checksum is taken over these and not over the headers. All ones, a zero of one's complement, are left out.
struct added_words_t {
    bit<32> node_id;
    bit<32> level1_ports;                   // ingress, egress
    bit<32> hop_latency_ns;
    bit<32> queue;                          // level, occupancy
    bit<48> ingress_time_ns;
    bit<48> egress_time_ns;
    bit<32> window_bytes;
}

struct egress_metadata_t {
    bit<12>       port_and_level;           // index of level_counter
    bit<32>       sent_bytes;               // the frame's, as it leaves
    bit<32>       window;                   // number of the window that it leaves in
    bit<32>       queue_cells;              // that waited in the queue when the packet came
    bit<8>        added_words;              // that this hop puts on the probe's stack: all of Hop ML, or none
    bit<16>       added_bytes;              // the same in bytes
    bit<32>       added_sent_bytes;         // and as wide as sent_bytes
    bit<8>        content_words;            // that the instructions of a probe's bits 0..7 ask each hop for
    bit<32>       last_window_bytes;        // that left by the egress port in its last complete window
    bit<16>       ipv4_residual;            // sum of what no switch changes in the IPv4 header
    bit<16>       l4_residual;              // the same of the L4 segment
    bit<1>        has_udp_checksum;
    added_words_t added;
}

#endif
