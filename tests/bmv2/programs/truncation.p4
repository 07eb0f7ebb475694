// Packets that are cut as they leave, by ingress, by egress, or by both.
#include <core.p4>
#include <v1model.p4>

header request_t { bit<8> what; bit<8> first; bit<8> second; }
header added_t { bit<32> value; }

struct headers_t {
    request_t request;
    added_t added;
}

struct metadata_t { @field_list(1) bit<8> round; }

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.request.what != 2 && meta.round == 0) {
            truncate((bit<32>)hdr.request.first);
        }
        if (hdr.request.what == 3) {
            hdr.added.setValid();
            hdr.added.value = 0x01020304;
        } else if (hdr.request.what == 4) {
            standard_metadata.mcast_grp = 1;
        } else if (hdr.request.what == 5) {
            clone(CloneType.I2E, 5);
        } else if (hdr.request.what == 11 && meta.round == 0) {
            meta.round = 1;
            resubmit_preserving_field_list(1);
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.what == 2 || hdr.request.what == 7) {
            truncate((bit<32>)hdr.request.second);
        }
        if (hdr.request.what == 8) {
            clone(CloneType.E2E, 5);
            hdr.request.what = 9;
        } else if (hdr.request.what == 10 && meta.round == 0) {
            meta.round = 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control update_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.added);
        packet.emit(hdr.request);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
