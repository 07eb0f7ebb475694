/* Clones, multicast, resubmission and recirculation: a packet's first header says what is to be done with it, and what the
 * switch knows of it at egress is written into a second one, so that a test sees it. */
#include <core.p4>
#include <v1model.p4>

const bit<8> CLONE = 1;             // ask for a clone at ingress
const bit<8> RESUBMIT = 2;
const bit<8> MULTICAST = 4;
const bit<8> CLONE_EGRESS = 8;
const bit<8> RECIRCULATE = 16;
const bit<8> DROP = 32;             // at the end of egress
const bit<8> DROP_EARLY = 64;       // at the end of ingress
const bit<8> FOREVER = 128;         // resubmission and recirculation come back for more

header request_t {
    bit<8>  what;
    bit<8>  value;
    bit<16> session;
    bit<16> group;
    bit<7>  padding;
    bit<9>  port;
}

header seen_t {
    bit<32> instance;
    bit<32> length;
    bit<16> replica;
    bit<16> ingress_port;
    bit<8>  first;
    bit<8>  second;
    bit<8>  third;
    bit<8>  parsed;
    bit<8>  level;
    bit<8>  rounds;
}

struct headers_t {
    request_t request;
    seen_t    seen;
}

struct metadata_t {
    @field_list(1, 2)
    bit<8> first;
    @field_list(2, 3)
    bit<8> second;
    bit<8> third;
    bit<8> parsed;
    @field_list(1, 2, 3)
    bit<8> rounds;
    bit<3> level;
}

parser RequestParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        meta.parsed = 9;
        transition select(standard_metadata.ingress_port) {
            3: with_seen;
            default: accept;
        }
    }
    state with_seen {
        packet.extract(hdr.seen);
        transition accept;
    }
}

control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Requested(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        bool comes_back = standard_metadata.instance_type == 4 || standard_metadata.instance_type == 6;
        bool once_more = !comes_back || hdr.request.what & FOREVER != 0;
        meta.third = hdr.request.value;
        standard_metadata.egress_spec = hdr.request.port;
        standard_metadata.priority = hdr.request.value[2:0];
        meta.second = meta.first + 1;
        meta.first = hdr.request.value;
        if (once_more && hdr.request.what & CLONE != 0) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.request.session, 1);
        }
        if (once_more && hdr.request.what & RESUBMIT != 0) {
            meta.rounds = meta.rounds + 1;
            resubmit_preserving_field_list(2);
        }
        if (hdr.request.what & MULTICAST != 0) {
            standard_metadata.mcast_grp = hdr.request.group;
        }
        if (hdr.request.what & DROP_EARLY != 0) {
            mark_to_drop(standard_metadata);
        }
    }
}

control Done(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) instances;
    apply {
        instances.count(standard_metadata.instance_type);
        hdr.seen.setValid();
        hdr.seen.instance = standard_metadata.instance_type;
        // BMv2 counts headers that egress has added to what it clones.
        hdr.seen.length = standard_metadata.instance_type == 2 ? 0 : standard_metadata.packet_length;
        hdr.seen.replica = standard_metadata.egress_rid;
        hdr.seen.ingress_port = (bit<16>) standard_metadata.ingress_port;
        hdr.seen.first = meta.first;
        hdr.seen.second = meta.second;
        hdr.seen.third = meta.third;
        hdr.seen.parsed = meta.parsed;
        hdr.seen.level = (bit<8>) standard_metadata.priority;
        hdr.seen.rounds = meta.rounds;
        bool is_clone = standard_metadata.instance_type == 1 || standard_metadata.instance_type == 2;
        if (!is_clone && hdr.request.what & CLONE_EGRESS != 0) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>) hdr.request.session, 3);
        }
        if (!is_clone && hdr.request.what & RECIRCULATE != 0 && (meta.rounds == 0 || hdr.request.what & FOREVER != 0)) {
            meta.rounds = meta.rounds + 1;
            recirculate_preserving_field_list(2);
        }
        if (!is_clone && hdr.request.what & DROP != 0) {
            mark_to_drop(standard_metadata);
        }
    }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RequestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.seen);
    }
}

V1Switch(RequestParser(), NoVerification(), Requested(), Done(), NoUpdate(), RequestDeparser()) main;
