// A parser that asks its controller which packets it knows, by value sets of one field and of several.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<16> kind; bit<3> a; bit<5> b; bit<72> wide; }
header known_t { bit<8> value; }

struct headers_t {
    request_t request;
    known_t known;
    known_t pair;
    known_t wide;
}

struct metadata_t {}

struct pair_t {
    @match(exact) bit<3> a;
    @match(exact) bit<72> wide;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) kinds;
    value_set<pair_t>(2) pairs;
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.kind) {
            0x0800: accept;
            kinds: parse_known;
            0xffff: parse_wide;
            default: accept;
        }
    }
    state parse_known {
        packet.extract(hdr.known);
        transition select(hdr.request.a, hdr.request.wide) {
            pairs: parse_pair;
            default: accept;
        }
    }
    state parse_pair {
        packet.extract(hdr.pair);
        transition accept;
    }
    state parse_wide {
        packet.extract(hdr.wide);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.pair.isValid()) {
            standard_metadata.egress_spec = 3;
        } else if (hdr.known.isValid()) {
            standard_metadata.egress_spec = 2;
        }
        if (hdr.known.isValid() && hdr.known.value == 9) {
            clone(CloneType.I2E, 5);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.known);
        packet.emit(hdr.pair);
        packet.emit(hdr.wide);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
