// A header with options of up to 40 bytes, like IPv4's: copied, compared, summed, and sent on.
#include <core.p4>
#include <v1model.p4>

header head_t { bit<4> version; bit<4> words; bit<8> what; bit<16> checksum; varbit<320> options; }
header tail_t { bit<16> value; }

struct headers_t {
    head_t outer;
    head_t inner;
    tail_t tail;
}

struct metadata_t {}

parser parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.outer, (bit<32>) (packet.lookahead<bit<8>>()[3:0]) * 32);
        transition select(hdr.outer.what) {
            1: parse_inner;
            default: accept;
        }
    }
    state parse_inner {
        packet.extract(hdr.inner, (bit<32>) (packet.lookahead<bit<8>>()[3:0]) * 8);
        transition accept;
    }
}

control verify_checksums(inout headers_t hdr, inout metadata_t meta) { apply {} }

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.inner.isValid()) {
            if (hdr.inner.options == hdr.outer.options) {
                hdr.tail.setValid();
                hdr.tail.value = 0xbeef;
            } else if (hdr.inner.version == 7) {
                hdr.outer.options = hdr.inner.options;
            } else if (hdr.inner.version == 8) {
                hdr.inner = hdr.outer;
            }
        } else if (hdr.outer.what == 2) {
            hdr.inner.setValid();
        }
        if (standard_metadata.parser_error != error.NoError) {
            hdr.tail.setValid();
            if (standard_metadata.parser_error == error.HeaderTooShort) {
                hdr.tail.value = 1;
            } else if (standard_metadata.parser_error == error.PacketTooShort) {
                hdr.tail.value = 2;
            }
        }
    }
}

control egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control update_checksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer.isValid(),
            { hdr.outer.version, hdr.outer.words, hdr.outer.what, hdr.outer.options },
            hdr.outer.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.inner.isValid(),
            { hdr.inner.version, hdr.inner.words, hdr.inner.what, hdr.inner.options, hdr.outer.options },
            hdr.inner.checksum, HashAlgorithm.crc16);
    }
}

control deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.inner);
        packet.emit(hdr.tail);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
