// Sums by loops inside of actions, and sends a packet on by the port that it names, counted where it leaves.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> what; bit<8> count; bit<8> port; bit<32> result; }
header trailer_t { bit<32> left; }

struct headers_t {
    request_t request;
    trailer_t trailer;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.what) {
            4: parse_trailer;
            default: accept;
        }
    }
    state parse_trailer {
        packet.extract(hdr.trailer);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action sum() {
        for (bit<8> i = 0; i < hdr.request.count; i = i + 1) {
            hdr.request.result = hdr.request.result + (bit<32>) i;
        }
    }
    action square() {
        for (bit<8> i = 0; i < hdr.request.count; i = i + 1) {
            for (bit<8> j = 0; j < hdr.request.count; j = j + 1) {
                hdr.request.result = hdr.request.result + 1;
            }
        }
    }
    action odd() {
        for (bit<8> i = 0; i < hdr.request.count; i = i + 1) {
            if (i & 1 == 0) {
                continue;
            }
            if (i > 100) {
                break;
            }
            hdr.request.result = hdr.request.result + 1;
        }
    }
    action forever() {
        for (bit<8> i = 0; i <= hdr.request.count; i = i & 1) {
            hdr.request.result = hdr.request.result + 1;
        }
    }
    // What a header that is no longer valid held is still there.
    action left() {
        hdr.trailer.setInvalid();
        hdr.request.result = hdr.trailer.left;
    }
    // What the header of another packet held is not.
    action never() {
        hdr.request.result = hdr.trailer.left;
    }
    table work {
        key = { hdr.request.what: exact; }
        actions = { sum; square; odd; forever; left; never; }
        const entries = {
            0: sum();
            1: square();
            2: odd();
            3: forever();
            4: left();
            5: never();
        }
        const default_action = sum();
    }
    apply {
        work.apply();
        standard_metadata.egress_spec = (bit<9>) hdr.request.port;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(256, CounterType.packets) leaving;
    apply {
        leaving.count((bit<32>) standard_metadata.egress_port);
        // The field waits in the queue although its header is no longer valid.
        hdr.request.result = hdr.request.result ^ hdr.trailer.left;
    }
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.trailer);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
