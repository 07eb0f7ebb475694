// A parser that selects by values, masks, ranges and what lies ahead, and skips bytes.

#include "common.p4"

header two_t {
    bit<4>  kind;
    bit<12> value;
}

header four_t {
    bit<8>  first;
    bit<24> rest;
}

struct headers_t {
    ethernet_t ethernet;
    two_t      two;
    four_t     four;
    two_t      last;
}

struct metadata_t {
    bit<8> way;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.way = 0;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type, intrinsic.ingress_port) {
            (0x0801, 5): parse_two;
            (0x0801, _): parse_four;
            (0x1200 &&& 0xFF00, 0 &&& 1): parse_skipping;
            (0x2000 .. 0x2FFF, _): parse_ahead;
            default: accept;
        }
    }

    state parse_two {
        packet.extract(hdr.two);
        meta.way = 1;
        transition select(hdr.two.kind) {
            7: parse_last;
            8 &&& 8: parse_four;
            default: accept;
        }
    }

    state parse_four {
        packet.extract(hdr.four);
        meta.way = 2;
        transition accept;
    }

    state parse_skipping {
        packet.advance(16);
        packet.extract(hdr.four);
        meta.way = 3;
        transition select(hdr.four.rest[7:0], hdr.four.first) {
            (1, 1): parse_last;
            (3 .. 9, 0x80 &&& 0x80): parse_last;
            default: accept;
        }
    }

    // Without a default: what has no case is an error, and dropped.
    state parse_ahead {
        meta.way = 4;
        transition select(packet.lookahead<bit<12>>()) {
            0x123: parse_two;
            0x800 &&& 0x800: parse_four;
        }
    }

    state parse_last {
        packet.extract(hdr.last);
        transition accept;
    }
}

control Ingress(INGRESS_PARAMETERS) {
    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        hdr.ethernet.source[7:0] = meta.way;
        if (hdr.four.isValid() && hdr.four.first == 0xEE) {
            for_deparser.drop_ctl = 1;
        }
        if (hdr.last.isValid()) {
            hdr.last.value = hdr.last.value + 1;
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)
