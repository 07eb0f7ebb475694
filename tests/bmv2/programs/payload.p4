// A checksum over a header and the whole payload, as UDP has it: verified, and computed anew.
#include <core.p4>
#include <v1model.p4>

header short_t { bit<8> what; bit<16> checksum; }
header more_t { bit<16> value; }

struct headers_t {
    short_t head;
    more_t more;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum_with_payload(hdr.head.isValid(), { 8w0, hdr.head.what }, hdr.head.checksum, HashAlgorithm.csum16);
    }
}

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (standard_metadata.checksum_error == 1) {
            standard_metadata.egress_spec = 3;
        }
        if (hdr.head.what == 1) {
            hdr.more.setValid();
            hdr.more.value = 0x1234;
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.more.isValid(), { hdr.head.what, hdr.more.value }, hdr.head.checksum, HashAlgorithm.csum16);
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.head);
        packet.emit(hdr.more);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
