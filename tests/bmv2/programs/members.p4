// Value sets with every kind of match, of narrow and of wide fields.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> what; bit<16> number; bit<128> wide; bit<32> address; bit<8> option; }
header found_t { bit<8> value; }

struct headers_t {
    request_t request;
    found_t found;
}

struct metadata_t {}

struct lane_t {
    @match(range) bit<16> number;
    @match(ternary) bit<8> option;
}

struct wide_t {
    @match(range) bit<128> wide;
}

struct route_t {
    @match(lpm) bit<32> address;
    @match(optional) bit<8> option;
    @match(ternary) bit<128> wide;
}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<lane_t>(4) lanes;
    value_set<wide_t>(4) wides;
    value_set<route_t>(4) routes;
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.what) {
            1: in_lanes;
            2: in_wides;
            3: in_routes;
            default: accept;
        }
    }
    state in_lanes {
        transition select(hdr.request.number, hdr.request.option) {
            lanes: is_found;
            default: accept;
        }
    }
    state in_wides {
        transition select(hdr.request.wide) {
            wides: is_found;
            default: accept;
        }
    }
    state in_routes {
        transition select(hdr.request.address, hdr.request.option, hdr.request.wide) {
            routes: is_found;
            default: accept;
        }
    }
    state is_found {
        packet.extract(hdr.found);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.found.isValid()) {
            standard_metadata.egress_spec = 2;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.found);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
