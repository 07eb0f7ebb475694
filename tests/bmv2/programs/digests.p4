// Tells its controllers the source of each packet and the port that it came by, as a switch that learns does.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> what; bit<48> source; bit<9> odd; bit<7> zeros; bit<72> wide; }

struct headers_t {
    request_t request;
}

struct metadata_t {}

struct place_t { bit<9> port; bit<9> odd; }
struct learned_t { bit<48> source; place_t place; bit<72> wide; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.what == 1) {
            digest<learned_t>(1, { hdr.request.source, { standard_metadata.ingress_port, hdr.request.odd }, hdr.request.wide });
        } else if (hdr.request.what == 2) {
            digest(1, { hdr.request.source, hdr.request.what });
        }
        hdr.request.source = 0;
        if (hdr.request.what == 3) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = 2;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
