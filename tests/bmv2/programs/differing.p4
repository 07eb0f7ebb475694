// What p4c declares in the P4Info otherwise than in the JSON, without harm: translated types, padding of controller
// headers, dead code, a constant default beside a profile, the size of a table without a key.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", 32)
type bit<9> port_t;

@controller_header("packet_in")
header to_cpu_t { port_t ingress_port; @padding bit<7> unused; port_t wanted_port; @padding bit<7> zeros; }

@controller_header("packet_out")
header from_cpu_t { bit<9> egress_port; bit<7> zeros; }

header request_t { bit<8> kind; bit<8> value; }

struct headers_t {
    to_cpu_t to_cpu;
    from_cpu_t from_cpu;
    request_t request;
}

struct metadata_t { port_t port; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<int<16>>(4) signs;
    action nothing() {}
    action forward(port_t port) {
        meta.port = port;
        standard_metadata.egress_spec = (bit<9>) port;
    }
    action copy_to_cpu(port_t port) {
        hdr.to_cpu.setValid();
        hdr.to_cpu.ingress_port = (port_t) standard_metadata.ingress_port;
        hdr.to_cpu.wanted_port = port;
        standard_metadata.egress_spec = 510;
    }
    table route {
        key = { hdr.request.kind: exact; meta.port: exact; }
        actions = { forward; copy_to_cpu; nothing; }
        default_action = nothing();
        size = 16;
    }
    action_profile(8) choices;
    table choose {
        key = { hdr.request.value: exact; }
        actions = { forward; nothing; }
        const default_action = nothing();
        implementation = choices;
    }
    action note() {
        int<16> last;
        signs.read(last, 0);
        signs.write(0, last - 1);
    }
    table always {
        actions = { note; }
        default_action = note();
        size = 8;
    }
    table never {
        key = { hdr.request.value: exact; }
        actions = { forward; nothing; }
        default_action = nothing();
    }
    apply {
        always.apply();
        route.apply();
        choose.apply();
        if (false) {
            never.apply();
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.to_cpu);
        packet.emit(hdr.request);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
