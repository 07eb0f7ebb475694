// A hash with a polynomial of the program's own, which p4testgen cannot compute.

#include "common.p4"

header numbers_t {
    bit<72> data;
    bit<16> crc;
}

struct headers_t {
    ethernet_t ethernet;
    numbers_t  numbers;
}

struct metadata_t {}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.numbers);
        transition accept;
    }
}

control Ingress(INGRESS_PARAMETERS) {
    CRCPolynomial<bit<16>>(16w0x1021, false, false, false, 16w0xFFFF, 16w0x0000) ccitt;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, ccitt) hash;

    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        hdr.numbers.crc = hash.get({ hdr.numbers.data });
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)
