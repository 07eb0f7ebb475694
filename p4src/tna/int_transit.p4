// INT transit: whether and what this hop adds to a probe, as INT-MD 2.1 prescribes. What it adds, the deparser reads in
// meta.added too, for the L4 checksum.

#include "word_counts.p4"

// A hop adds all the words that Hop ML asks for, or none.
control IntAdmission(inout egress_headers_t hdr, inout egress_metadata_t meta,
                     in egress_intrinsic_metadata_t intrinsic) {

    @name(".egress") WordCounts() word_counts;

    bit<8>  hop_words;
    bit<16> hop_bytes;
    bit<32> hop_sent_bytes;
    bit<8>  more_words;
    bit<16> mtu_bytes;
    bit<8>  stack_room_words;               // until header and stack have 255
    bit<8>  excess_words;                   // of this hop, beyond that room
    bit<16> excess_bytes;                   // of the packet with this hop's words, beyond the MTU
    bit<8>  lacking_words;                  // that the instructions ask for beyond Hop ML

    action measure_probe() {
        stack_room_words = ~hdr.int_shim.length;
        excess_bytes = hdr.ipv4.total_length |+| hop_bytes;
        lacking_words = meta.content_words + more_words;
    }

    // The port sends IPv4 packets of up to so many bytes: a probe that would exceed it gets no words, but the M bit.
    @id(ID_ACTION_SET_MTU)
    action set_mtu(bit<16> bytes) {
        mtu_bytes = bytes;
    }

    // Egress ports whose MTU differs from the default, which can be changed.
    @id(ID_TABLE_MTU)
    table mtu {
        key = { intrinsic.egress_port: exact @name("egress_port"); }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = PORTS;
    }

    // The source may have room for more words in Hop ML, but not for fewer.
    action compare_sizes() {
        lacking_words = lacking_words |-| hop_words;
        excess_words = hop_words |-| stack_room_words;
        excess_bytes = excess_bytes |-| mtu_bytes;
    }

    action set_hop_count_exceeded() {
        hdr.int_md.hop_count_exceeded = 1;
    }

    action set_mtu_exceeded() {
        hdr.int_md.mtu_exceeded = 1;
    }

    action admit() {
        meta.added_words = hop_words;
        meta.added_bytes = hop_bytes;
        meta.added_sent_bytes = hop_sent_bytes;
    }

    apply {
        word_counts.apply(hdr, meta.content_words, more_words, hop_words, hop_bytes,
                          hop_sent_bytes);
        mtu.apply();
        measure_probe();
        compare_sizes();
        if (hdr.int_md.remaining_hop_count == 0) {
            set_hop_count_exceeded();
        } else if (lacking_words == 0 && excess_words == 0) {
            if (excess_bytes == 0) {
                admit();
            } else {
                set_mtu_exceeded();
            }
        }
    }
}

// One word or two for every instruction, in the order of the bitmap, and what the lengths and the hop count become.
control IntMetadata(inout egress_headers_t hdr, inout egress_metadata_t meta,
                    in egress_intrinsic_metadata_t intrinsic,
                    in egress_intrinsic_metadata_from_parser_t from_parser) {

    // This switch's number in INT. All ones, as long as the controller has not set it.
    @id(ID_ACTION_SET_NODE_ID)
    action set_node_id(bit<32> node_id) {
        hdr.int_node_id.setValid();
        hdr.int_node_id.node_id = node_id;
        meta.added.node_id = node_id;
    }

    // No key: the controller sets the default entry once per switch.
    @id(ID_TABLE_NODE_ID)
    table node_id {
        actions = { set_node_id; }
        default_action = set_node_id(INVALID_32);
        size = 1;
    }

    // The hash unit moves bits to any place, which the arithmetic units do not.
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) level1_ports_word;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) queue_word;

    action read_level1_ports() {
        meta.added.level1_ports = level1_ports_word.get({ hdr.bridged.ingress_port, 7w0, intrinsic.egress_port });
    }

    action add_level1_ports() {
        hdr.int_level1_ports.setValid();
        hdr.int_level1_ports.ingress = meta.added.level1_ports[31:16];
        hdr.int_level1_ports.egress = meta.added.level1_ports[15:0];
    }

    action read_hop_latency() {
        meta.added.hop_latency_ns = from_parser.global_tstamp[31:0] - hdr.bridged.ingress_time_ns[31:0];
    }

    action add_hop_latency() {
        hdr.int_hop_latency.setValid();
        hdr.int_hop_latency.nanoseconds = meta.added.hop_latency_ns;
    }

    action read_queue() {
        meta.added.queue = queue_word.get({ 5w0, hdr.bridged.level, 5w0, intrinsic.enq_qdepth });
    }

    action add_queue() {
        hdr.int_queue.setValid();
        hdr.int_queue.queue_id = meta.added.queue[31:24];
        hdr.int_queue.occupancy = meta.added.queue[23:0];
    }

    action add_ingress_time() {
        hdr.int_ingress_time.setValid();
        hdr.int_ingress_time.zero = 0;
        hdr.int_ingress_time.nanoseconds = hdr.bridged.ingress_time_ns;
        meta.added.ingress_time_ns = hdr.bridged.ingress_time_ns;
    }

    action add_egress_time() {
        hdr.int_egress_time.setValid();
        hdr.int_egress_time.zero = 0;
        hdr.int_egress_time.nanoseconds = from_parser.global_tstamp;
        meta.added.egress_time_ns = from_parser.global_tstamp;
    }

    action add_level2_ports() {
        hdr.int_level2_ports.setValid();
        hdr.int_level2_ports.ports = INVALID_64;
    }

    action add_utilisation() {
        hdr.int_utilisation.setValid();
        hdr.int_utilisation.window_bytes = meta.last_window_bytes;
        meta.added.window_bytes = meta.last_window_bytes;
    }

    // Words of Hop ML beyond those above: for bits 8..15, which nothing here answers, and for a domain unknown here.
    action add_filler_16() {
        hdr.int_filler_16.setValid();
        hdr.int_filler_16.words_1 = INVALID_64;
        hdr.int_filler_16.words_2 = INVALID_64;
        hdr.int_filler_16.words_3 = INVALID_64;
        hdr.int_filler_16.words_4 = INVALID_64;
        hdr.int_filler_16.words_5 = INVALID_64;
        hdr.int_filler_16.words_6 = INVALID_64;
        hdr.int_filler_16.words_7 = INVALID_64;
        hdr.int_filler_16.words_8 = INVALID_64;
    }

    action add_filler_8() {
        hdr.int_filler_8.setValid();
        hdr.int_filler_8.words_1 = INVALID_64;
        hdr.int_filler_8.words_2 = INVALID_64;
        hdr.int_filler_8.words_3 = INVALID_64;
        hdr.int_filler_8.words_4 = INVALID_64;
    }

    action add_filler_4() {
        hdr.int_filler_4.setValid();
        hdr.int_filler_4.words_1 = INVALID_64;
        hdr.int_filler_4.words_2 = INVALID_64;
    }

    action add_filler_2() {
        hdr.int_filler_2.setValid();
        hdr.int_filler_2.words = INVALID_64;
    }

    action add_filler_1() {
        hdr.int_filler_1.setValid();
        hdr.int_filler_1.word = INVALID_32;
    }

    bit<8> filler_words;

    // The pseudo header's length is in L4's checksum too.
    action lengthen() {
        hdr.ipv4.total_length = hdr.ipv4.total_length + meta.added_bytes;
        hdr.int_shim.length = hdr.int_shim.length + meta.added_words;
        hdr.int_md.remaining_hop_count = hdr.int_md.remaining_hop_count - 1;
        filler_words = meta.added_words - meta.content_words;
    }

    action lengthen_udp() {
        hdr.udp.length = hdr.udp.length + meta.added_bytes;
    }

    apply {
        lengthen();
        if (hdr.udp.isValid()) {
            lengthen_udp();
        }
        if (hdr.int_md.wants_node_id == 1) {
            node_id.apply();
        }
        if (hdr.int_md.wants_level1_ports == 1) {
            read_level1_ports();
            add_level1_ports();
        }
        if (hdr.int_md.wants_hop_latency == 1) {
            read_hop_latency();
            add_hop_latency();
        }
        if (hdr.int_md.wants_queue == 1) {
            read_queue();
            add_queue();
        }
        if (hdr.int_md.wants_ingress_time == 1) {
            add_ingress_time();
        }
        if (hdr.int_md.wants_egress_time == 1) {
            add_egress_time();
        }
        if (hdr.int_md.wants_level2_ports == 1) {
            add_level2_ports();
        }
        if (hdr.int_md.wants_utilisation == 1) {
            add_utilisation();
        }
        if (filler_words[4:4] == 1) {
            add_filler_16();
        }
        if (filler_words[3:3] == 1) {
            add_filler_8();
        }
        if (filler_words[2:2] == 1) {
            add_filler_4();
        }
        if (filler_words[1:1] == 1) {
            add_filler_2();
        }
        if (filler_words[0:0] == 1) {
            add_filler_1();
        }
    }
}
