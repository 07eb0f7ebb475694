// INT transit: whether and what this hop adds to a probe, as INT-MD 2.1 prescribes. What it changes in the L4 segment
// it also adds to meta.checksum_delta; all ones, being a zero of one's complement, change no checksum.

// One's complement sum of the 16-bit words of a number.
#define SUM_32(number) ((number) >> 16) + ((number) & 0xFFFF)
#define SUM_48(number) (bit<32>) ((number) >> 32) + ((bit<32>) (number) >> 16) + ((bit<32>) (number) & 0xFFFF)

// A hop adds all the words that Hop ML asks for, or none.
control IntAdmission(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    bit<16> mtu_bytes;
    bit<8> asked_words;

    // The port sends IPv4 packets of up to so many bytes: a probe that would exceed it gets no words, but the M bit.
    @id(ID_ACTION_SET_MTU)
    action set_mtu(bit<16> bytes) {
        mtu_bytes = bytes;
    }

    // Egress ports whose MTU differs from the default, which can be changed.
    @id(ID_TABLE_MTU)
    table mtu {
        key = { standard_metadata.egress_port: exact @name("egress_port"); }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = PORTS;
    }

    // Words that the instruction bitmap asks for; the source may have room for more in Hop ML, but not for fewer.
    action count_asked_words() {
        meta.content_words = (bit<5>) hdr.int_md.wants_node_id + (bit<5>) hdr.int_md.wants_level1_ports
            + (bit<5>) hdr.int_md.wants_hop_latency + (bit<5>) hdr.int_md.wants_queue
            + (bit<5>) (hdr.int_md.wants_ingress_time ++ 1w0) + (bit<5>) (hdr.int_md.wants_egress_time ++ 1w0)
            + (bit<5>) (hdr.int_md.wants_level2_ports ++ 1w0) + (bit<5>) hdr.int_md.wants_utilisation;
        asked_words = (bit<8>) meta.content_words
            + (bit<8>) hdr.int_md.wants_more[7:7] + (bit<8>) hdr.int_md.wants_more[6:6]
            + (bit<8>) hdr.int_md.wants_more[5:5] + (bit<8>) hdr.int_md.wants_more[4:4]
            + (bit<8>) hdr.int_md.wants_more[3:3] + (bit<8>) hdr.int_md.wants_more[2:2]
            + (bit<8>) hdr.int_md.wants_more[1:1] + (bit<8>) hdr.int_md.wants_more[0:0];
    }

    action set_hop_count_exceeded() {
        meta.checksum_delta = (bit<32>) ~hdr.int_md.hop_count_exceeded << 10;
        hdr.int_md.hop_count_exceeded = 1;
    }

    action set_mtu_exceeded() {
        meta.checksum_delta = (bit<32>) ~hdr.int_md.mtu_exceeded << 9;
        hdr.int_md.mtu_exceeded = 1;
    }

    action admit() {
        meta.added_words = hdr.int_md.hop_words;
    }

    apply {
        count_asked_words();
        mtu.apply();
        if (hdr.int_md.remaining_hop_count == 0) {
            set_hop_count_exceeded();
        } else if (asked_words <= (bit<8>) hdr.int_md.hop_words
                   && (bit<9>) hdr.int_shim.length + (bit<9>) hdr.int_md.hop_words <= INT_MAX_WORDS) {
            if ((bit<17>) hdr.ipv4.total_length + (bit<17>) (hdr.int_md.hop_words ++ 2w0) <= (bit<17>) mtu_bytes) {
                admit();
            } else {
                set_mtu_exceeded();
            }
        }
    }
}

// One word or two for every instruction, in the order of the bitmap, and what the lengths and the hop count become.
control IntMetadata(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // This switch's number in INT. All ones, as long as the controller has not set it.
    @id(ID_ACTION_SET_NODE_ID)
    action set_node_id(bit<32> node_id) {
        hdr.int_node_id.setValid();
        hdr.int_node_id.node_id = node_id;
        meta.checksum_delta = meta.checksum_delta + SUM_32(node_id);
    }

    // No key: the controller sets the default entry once per switch.
    @id(ID_TABLE_NODE_ID)
    table node_id {
        actions = { set_node_id; }
        default_action = set_node_id(INVALID_32);
        size = 1;
    }

    action add_level1_ports() {
        hdr.int_level1_ports.setValid();
        hdr.int_level1_ports.ingress = (bit<16>) standard_metadata.ingress_port;
        hdr.int_level1_ports.egress = (bit<16>) standard_metadata.egress_port;
        meta.checksum_delta = meta.checksum_delta + (bit<32>) standard_metadata.ingress_port
            + (bit<32>) standard_metadata.egress_port;
    }

    action add_hop_latency() {
        hdr.int_hop_latency.setValid();
        hdr.int_hop_latency.microseconds =
            (bit<32>) (standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp);
        meta.checksum_delta = meta.checksum_delta + SUM_32(hdr.int_hop_latency.microseconds);
    }

    action add_queue() {
        hdr.int_queue.setValid();
        hdr.int_queue.queue_id = (bit<8>) meta.level;
        hdr.int_queue.occupancy = (bit<24>) standard_metadata.enq_qdepth;
        meta.checksum_delta = meta.checksum_delta + ((bit<32>) meta.level << 8)
            + SUM_32((bit<32>) standard_metadata.enq_qdepth);
    }

    action add_ingress_time() {
        hdr.int_ingress_time.setValid();
        hdr.int_ingress_time.microseconds = (bit<64>) standard_metadata.ingress_global_timestamp;
        meta.checksum_delta = meta.checksum_delta + SUM_48(standard_metadata.ingress_global_timestamp);
    }

    action add_egress_time() {
        hdr.int_egress_time.setValid();
        hdr.int_egress_time.microseconds = (bit<64>) standard_metadata.egress_global_timestamp;
        meta.checksum_delta = meta.checksum_delta + SUM_48(standard_metadata.egress_global_timestamp);
    }

    action add_level2_ports() {
        hdr.int_level2_ports.setValid();
        hdr.int_level2_ports.ports = INVALID_64;
    }

    action add_utilisation() {
        hdr.int_utilisation.setValid();
        hdr.int_utilisation.window_bytes = meta.last_window_bytes;
        meta.checksum_delta = meta.checksum_delta + SUM_32(meta.last_window_bytes);
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

    // The pseudo header's length is in L4's checksum too.
    action lengthen() {
        bit<16> added_bytes = (bit<16>) (meta.added_words ++ 2w0);
        hdr.ipv4.total_length = hdr.ipv4.total_length + added_bytes;
        hdr.int_shim.length = hdr.int_shim.length + (bit<8>) meta.added_words;
        hdr.int_md.remaining_hop_count = hdr.int_md.remaining_hop_count - 1;
        meta.checksum_delta = meta.checksum_delta + (bit<32>) added_bytes + (bit<32>) meta.added_words + MINUS_ONE;
    }

    action lengthen_udp() {
        bit<16> added_bytes = (bit<16>) (meta.added_words ++ 2w0);
        hdr.udp.length = hdr.udp.length + added_bytes;
        meta.checksum_delta = meta.checksum_delta + (bit<32>) added_bytes;
    }

    apply {
        bit<5> filler_words = meta.added_words - meta.content_words;
        lengthen();
        if (hdr.udp.isValid()) {
            lengthen_udp();
        }
        if (hdr.int_md.wants_node_id == 1) {
            node_id.apply();
        }
        if (hdr.int_md.wants_level1_ports == 1) {
            add_level1_ports();
        }
        if (hdr.int_md.wants_hop_latency == 1) {
            add_hop_latency();
        }
        if (hdr.int_md.wants_queue == 1) {
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
