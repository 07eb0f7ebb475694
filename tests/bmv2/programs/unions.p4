// A stack of header unions, an index with a sign, and assertions.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<8> what; int<8> index; bit<8> count; }
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<24> value; }
header element_t { bit<8> value; }

header_union option_t {
    short_t small;
    long_t large;
}

struct headers_t {
    head_t head;
    option_t[3] options;
    element_t[2] elements;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.elements.next);
        packet.extract(hdr.elements.next);
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
    action mark() {
        hdr.elements[hdr.head.index].value = 0xee;
    }
    table always {
        actions = { mark; }
        const default_action = mark();
    }
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.head.what == 1) {
            always.apply();
        } else if (hdr.head.what == 2) {
            if (hdr.options[0].small.isValid()) {
                hdr.options[0].large.setValid();
                hdr.options[0].large.kind = 2;
                hdr.options[0].large.value = 0xabcdef;
            }
            if (hdr.options[1].isValid()) {
                hdr.head.count = hdr.head.count + 1;
            }
        } else if (hdr.head.what == 3) {
            assert(hdr.head.count > 3);
        } else if (hdr.head.what == 4) {
            assume(hdr.options[2].isValid());
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.head.what == 5) {
            assert(hdr.head.count > 3);
        }
    }
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.head);
        packet.emit(hdr.elements);
        packet.emit(hdr.options);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
