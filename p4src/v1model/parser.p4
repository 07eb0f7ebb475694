// Bytes to headers. Whatever a packet is too short for stays unread, and invalid.

parser TrainyardParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
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
        transition select(packet.lookahead<bit<40>>()) {
            INT_MD_2: parse_int_md;
            default: accept;
        }
    }

    state parse_int_md {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_md);
        transition accept;
    }

    // ---- IPv4 options: as many words as the header's length exceeds 5 by, in pieces of 8, 4, 2 and 1 -------------

    state parse_ipv4_with_options {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.header_length) {
            6: parse_options_1;
            7 .. 8: parse_options_2;
            9 .. 12: parse_options_4;
            default: parse_options_8;
        }
    }

    state parse_options_8 {
        packet.extract(hdr.options_8);
        transition select(hdr.ipv4.header_length) {
            14: parse_options_1;
            15: parse_options_2;
            default: accept;
        }
    }

    state parse_options_4 {
        packet.extract(hdr.options_4);
        transition select(hdr.ipv4.header_length) {
            10: parse_options_1;
            11 .. 12: parse_options_2;
            default: accept;
        }
    }

    state parse_options_2 {
        packet.extract(hdr.options_2);
        transition select(hdr.ipv4.header_length) {
            8: parse_options_1;
            12: parse_options_1;
            default: accept;
        }
    }

    state parse_options_1 {
        packet.extract(hdr.options_1);
        transition accept;
    }
}
