// Tables whose entries age: one with an exact key, a ternary one, and one that does not age.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> source; bit<8> target; }

struct headers_t { request_t request; }

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    direct_counter(CounterType.packets) hits;
    action counted(bit<9> port) {
        hits.count();
        standard_metadata.egress_spec = port;
    }
    table learned {
        key = { hdr.request.source: exact; }
        actions = { forward; NoAction; }
        size = 16;
        support_timeout = true;
    }
    table flows {
        key = { hdr.request.target: ternary; }
        actions = { counted; NoAction; }
        counters = hits;
        support_timeout = true;
        size = 16;
    }
    table routes {
        key = { hdr.request.target: exact; }
        actions = { forward; NoAction; }
        size = 16;
    }
    apply {
        learned.apply();
        flows.apply();
        routes.apply();
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.request); }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
