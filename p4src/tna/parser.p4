// Bytes to headers, in both halves. What a packet is too short for sets parser_err, and ingress drops it as malformed.
//
// The parsers also prepare the checksums: they verify IPv4's, and take what a switch may change out of the sums. The
// deparsers add what it has become.

#define IPV4_VERSION_TO_ECN hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.dscp, hdr.ipv4.ecn
#define INT_MD_UNTIL_HOP_COUNT hdr.int_md.version, hdr.int_md.discard, hdr.int_md.hop_count_exceeded, \
    hdr.int_md.mtu_exceeded, hdr.int_md.reserved, hdr.int_md.hop_words, hdr.int_md.remaining_hop_count
#define INT_SHIM_UNTIL_LENGTH hdr.int_shim.type, hdr.int_shim.next_protocol_type, hdr.int_shim.reserved, \
    hdr.int_shim.length

parser IngressParser(packet_in packet, out ingress_headers_t hdr, out ingress_metadata_t meta,
                     out ingress_intrinsic_metadata_t intrinsic) {

    Checksum() ipv4_checksum;
    Checksum() ipv4_residual;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        hdr.bridged.setValid();
        hdr.bridged.is_opaque = 0;
        hdr.bridged.is_probe = 0;
        hdr.bridged.padding_1 = 0;
        hdr.bridged.padding_2 = 0;
        hdr.bridged.level = 0;
        hdr.bridged.ingress_port = 0;
        hdr.bridged.ingress_time_ns = 0;
        meta.source_port = 0;
        meta.destination_port = 0;
        meta.int_words = 0;
        meta.crc = 0;
        meta.ecmp_hash = 0;
        meta.ecmp_group = 0;
        meta.ecmp_slot = 0;
        meta.has_ecmp_group = 0;
        meta.next_hop = 0;
        meta.level = 0;
        meta.is_probe = 0;
        meta.is_trusted = 0;
        meta.has_wrong_checksum = false;
        meta.drop_reason = DROP_NOTHING;
        meta.ipv4_residual = 0;
        transition select(intrinsic.ingress_port) {
            TOFINO_CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    // What the controller sends is sent as it is: nothing more of it needs reading.
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_IPV4: parse_version;
            default: accept;
        }
    }

    // Version 4 and a header length of 5 to 15 words; anything else is no IPv4 header.
    state parse_version {
        transition select(packet.lookahead<bit<8>>()) {
            0x45: parse_ipv4;
            0x46 &&& 0xFE: parse_ipv4_with_options;
            0x48 &&& 0xF8: parse_ipv4_with_options;
            default: accept;
        }
    }

    // Ports are read only where they stand right behind a plain header of an unfragmented packet.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        meta.has_wrong_checksum = ipv4_checksum.verify();
        ipv4_residual.subtract({ hdr.ipv4.checksum });
        ipv4_residual.subtract({ IPV4_VERSION_TO_ECN, hdr.ipv4.time_to_live, hdr.ipv4.protocol });
        meta.ipv4_residual = ipv4_residual.get();
        transition select(hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0 &&& 1, 0, PROTOCOL_TCP): parse_ports;
            (0 &&& 1, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        meta.source_port = hdr.ports.source;
        meta.destination_port = hdr.ports.destination;
        transition select(hdr.ipv4.dscp, hdr.ipv4.protocol) {
            (1 &&& 1, PROTOCOL_UDP): parse_udp;
            (1 &&& 1, PROTOCOL_TCP): parse_tcp;
            default: accept;
        }
    }

    // ---- INT -----------------------------------------------------------------------------------------------------

    state parse_udp {
        packet.extract(hdr.udp);
        transition parse_int;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition select(hdr.tcp.data_offset) {
            5: parse_int;
            default: accept;
        }
    }

    // Whether shim and header fit into the packet, ingress judges.
    state parse_int {
        int_start_t int_start = packet.lookahead<int_start_t>();
        transition select(int_start.shim, int_start.md) {
            (0x10 &&& 0xFC, 0x20 &&& 0xF0): parse_int_md;
            default: accept;
        }
    }

    state parse_int_md {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        meta.int_words = (bit<16>) hdr.int_shim.length;
        transition accept;
    }

    // ---- IPv4 options: as many words as the header's length exceeds 5 by, in pieces of 8, 4, 2 and 1 -------------

    state parse_ipv4_with_options {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        ipv4_residual.subtract({ hdr.ipv4.checksum });
        ipv4_residual.subtract({ IPV4_VERSION_TO_ECN, hdr.ipv4.time_to_live, hdr.ipv4.protocol });
        meta.ipv4_residual = ipv4_residual.get();
        transition select(hdr.ipv4.header_length) {
            6: parse_options_1;
            7: parse_options_2;
            8: parse_options_2;
            9 &&& 0xF: parse_options_4;
            10 &&& 0xF: parse_options_4;
            11 &&& 0xF: parse_options_4;
            12 &&& 0xF: parse_options_4;
            default: parse_options_8;
        }
    }

    state parse_options_8 {
        packet.extract(hdr.options_8);
        ipv4_checksum.add(hdr.options_8);
        transition select(hdr.ipv4.header_length) {
            14: parse_options_1;
            15: parse_options_2;
            default: verify_options;
        }
    }

    state parse_options_4 {
        packet.extract(hdr.options_4);
        ipv4_checksum.add(hdr.options_4);
        transition select(hdr.ipv4.header_length) {
            10: parse_options_1;
            11: parse_options_2;
            12: parse_options_2;
            default: verify_options;
        }
    }

    state parse_options_2 {
        packet.extract(hdr.options_2);
        ipv4_checksum.add(hdr.options_2);
        transition select(hdr.ipv4.header_length) {
            8: parse_options_1;
            12: parse_options_1;
            default: verify_options;
        }
    }

    state parse_options_1 {
        packet.extract(hdr.options_1);
        ipv4_checksum.add(hdr.options_1);
        transition verify_options;
    }

    state verify_options {
        meta.has_wrong_checksum = ipv4_checksum.verify();
        transition accept;
    }
}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                    out egress_intrinsic_metadata_t intrinsic) {

    Checksum() ipv4_residual;
    Checksum() l4_residual;

    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.bridged);
        meta.port_and_level = 0;
        meta.sent_bytes = (bit<32>) intrinsic.pkt_length;
        meta.queue_cells = 0;
        meta.added_sent_bytes = 0;
        meta.window = 0;
        meta.added_bytes = 0;
        meta.added_words = 0;
        meta.content_words = 0;
        meta.last_window_bytes = 0;
        meta.ipv4_residual = 0;
        meta.l4_residual = 0;
        meta.has_udp_checksum = 0;
        meta.added = { 0, 0, 0, 0, 0, 0, 0 };
        transition select(hdr.bridged.is_opaque) {
            0: parse_ipv4;
            default: accept;
        }
    }

    // Ingress sends on nothing else. Options stay behind the header, unread.
    state parse_ipv4 {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        ipv4_residual.subtract({ hdr.ipv4.checksum });
        ipv4_residual.subtract({ IPV4_VERSION_TO_ECN, hdr.ipv4.total_length });
        meta.ipv4_residual = ipv4_residual.get();
        l4_residual.subtract({ hdr.ipv4.total_length });
        transition select(hdr.bridged.is_probe, hdr.ipv4.protocol) {
            (1, PROTOCOL_UDP): parse_udp;
            (1, PROTOCOL_TCP): parse_tcp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        l4_residual.subtract({ hdr.udp.length, hdr.udp.checksum });
        transition select(hdr.udp.checksum) {
            0: parse_int;
            default: parse_int_behind_checksum;
        }
    }

    state parse_int_behind_checksum {
        meta.has_udp_checksum = 1;
        transition parse_int;
    }

    state parse_tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        l4_residual.subtract({ hdr.tcp.checksum });
        transition parse_int;
    }

    state parse_int {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        l4_residual.subtract({ INT_SHIM_UNTIL_LENGTH });
        l4_residual.subtract({ INT_MD_UNTIL_HOP_COUNT });
        meta.l4_residual = l4_residual.get();
        transition accept;
    }
}
