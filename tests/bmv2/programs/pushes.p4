// Stacks of header unions to which elements are pushed, and from which they are popped.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<8> what; }
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<24> value; }

header_union option_t {
    short_t small;
    long_t large;
}

struct headers_t {
    head_t head;
    option_t[3] options;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.head);
        transition next_option;
    }
    state next_option {
        transition select(packet.lookahead<bit<8>>()) {
            1: parse_small;
            2: parse_large;
            default: accept;
        }
    }
    state parse_small {
        packet.extract(hdr.options.next.small);
        transition next_option;
    }
    state parse_large {
        packet.extract(hdr.options.next.large);
        transition next_option;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.head.what == 1) {
            hdr.options.push_front(1);
        } else if (hdr.head.what == 2) {
            hdr.options.push_front(1);
            hdr.options[0].large.setValid();
            hdr.options[0].large.kind = 2;
            hdr.options[0].large.value = 0xabcdef;
        } else if (hdr.head.what == 3) {
            hdr.options.pop_front(1);
        } else if (hdr.head.what == 4) {
            hdr.options.pop_front(2);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.head);
        packet.emit(hdr.options);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
