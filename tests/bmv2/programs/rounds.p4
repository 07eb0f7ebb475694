// A parser goes round in states that extract nothing: it counts, skips words, or does not come to an end.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> what; bit<8> count; bit<8> rounds; }
header word_t { bit<16> value; }

struct headers_t {
    request_t request;
    word_t word;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.what) {
            1: count;
            2: skip;
            3: ping;
            4: forever;
            default: accept;
        }
    }
    state count {
        hdr.request.rounds = hdr.request.rounds + 1;
        transition select(hdr.request.rounds == hdr.request.count) {
            true: accept;
            default: count;
        }
    }
    // Words of zeros; the first other one is extracted.
    state skip {
        transition select(packet.lookahead<bit<16>>()) {
            0: skipped;
            default: take;
        }
    }
    state skipped {
        packet.advance(16);
        hdr.request.rounds = hdr.request.rounds + 1;
        transition skip;
    }
    state take {
        packet.extract(hdr.word);
        transition accept;
    }
    // Two states in turn, and out of the second one.
    state ping {
        hdr.request.rounds = hdr.request.rounds + 1;
        transition select(hdr.request.count) {
            0: accept;
            default: pong;
        }
    }
    state pong {
        transition select(hdr.request.rounds == hdr.request.count) {
            true: take;
            default: ping;
        }
    }
    state forever {
        transition select(hdr.request.what) {
            4: again;
            default: accept;
        }
    }
    state again {
        transition forever;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(8, CounterType.packets) parsed;
    apply {
        parsed.count((bit<32>) hdr.request.what);
        standard_metadata.egress_spec = 2;
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.word);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
