// Checksums: one over a header, verified and computed anew, and one over a payload that nobody reads, brought up to date.

#include "common.p4"

header numbers_t {
    bit<8>  first;
    bit<8>  second;
    bit<16> third;
    bit<16> checksum;
    bit<16> checksum_of_all;
}

struct headers_t {
    ethernet_t ethernet;
    numbers_t  numbers;
}

struct metadata_t {
    bool    is_wrong;
    bit<16> residual;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() header_checksum;
    Checksum() residual;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.is_wrong = false;
        meta.residual = 0;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.numbers);
        header_checksum.add({ hdr.numbers.first, hdr.numbers.second, hdr.numbers.third, hdr.numbers.checksum });
        meta.is_wrong = header_checksum.verify();
        residual.subtract({ hdr.numbers.checksum_of_all });
        residual.subtract({ hdr.numbers.first, hdr.numbers.second });
        meta.residual = residual.get();
        transition accept;
    }
}

control Ingress(INGRESS_PARAMETERS) {
    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        if (meta.is_wrong) {
            hdr.ethernet.ether_type = 0xBAD;
        }
        hdr.numbers.first = hdr.numbers.first + 1;
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() header_checksum;
    Checksum() checksum_of_all;

    apply {
        hdr.numbers.checksum = header_checksum.update({ hdr.numbers.first, hdr.numbers.second, hdr.numbers.third });
        hdr.numbers.checksum_of_all = checksum_of_all.update({ hdr.numbers.first, hdr.numbers.second, meta.residual },
                                                             true);
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)
