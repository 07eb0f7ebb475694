// Hashes that the architecture knows.

#include "common.p4"

header numbers_t {
    bit<32> source;
    bit<32> destination;
    bit<8>  protocol;
    bit<32> crc32;
    bit<16> crc32_low;
    bit<16> crc16;
    bit<16> identity;
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
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash_32;
    Hash<bit<16>>(HashAlgorithm_t.CRC32) hash_32_low;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash_16;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) hash_identity;

    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        hdr.numbers.crc32 = hash_32.get({ hdr.numbers.source, hdr.numbers.destination, hdr.numbers.protocol });
        hdr.numbers.crc32_low = hash_32_low.get({ hdr.numbers.destination, hdr.numbers.source });
        hdr.numbers.crc16 = hash_16.get({ hdr.numbers.source, hdr.numbers.protocol });
        hdr.numbers.identity = hash_identity.get({ hdr.numbers.source[7:0], hdr.numbers.protocol });
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)
