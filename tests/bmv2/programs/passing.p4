// Sends every packet on as it came: what arrives by port 1 to port 2, what arrives by port 2 to port 400; drops the rest.
// The headers differ in all that a deparser can get wrong: widths, alignment, repetition, absence.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> kind; }
header tag_t { bit<3> priority; bit<1> eligible; bit<12> vlan; bit<16> kind; }
header odd_t { bit<1> a; bit<7> b; bit<13> c; bit<31> d; bit<65> e; bit<3> f; int<9> g; bit<7> h; bit<8> next; }
header wide_t { bit<128> source; bit<200> middle; bit<8> next; }
header tail_t { bit<8> octet; }

struct headers_t {
    ethernet_t ethernet;
    tag_t[3] tags;
    odd_t odd;
    wide_t wide;
    tail_t tail;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            0x8100: parse_tag;
            0x0800: parse_odd;
            0x86dd: parse_wide;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.kind) {
            0x8100: parse_tag;
            0x0800: parse_odd;
            0x86dd: parse_wide;
            default: accept;
        }
    }
    state parse_odd {
        packet.extract(hdr.odd);
        transition select(hdr.odd.next) {
            1: parse_wide;
            2: parse_tail;
            default: accept;
        }
    }
    state parse_wide {
        packet.extract(hdr.wide);
        transition select(hdr.wide.next) {
            2: parse_tail;
            default: accept;
        }
    }
    state parse_tail {
        packet.extract(hdr.tail);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.ingress_port == 1) {
            standard_metadata.egress_spec = 2;
        } else if (standard_metadata.ingress_port == 2) {
            standard_metadata.egress_spec = 400;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.odd);
        packet.emit(hdr.wide);
        packet.emit(hdr.tail);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
