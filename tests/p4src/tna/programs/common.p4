// What the small programs share: Ethernet, no bridged metadata, and an egress that changes nothing.

#ifndef SMALL_PROGRAMS_COMMON_P4
#define SMALL_PROGRAMS_COMMON_P4

#include <core.p4>
#include <tna.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

struct egress_headers_t {
    ethernet_t ethernet;
}

struct egress_metadata_t {}

parser EgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                    out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Egress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_output_port) {
    apply {}
}

control EgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

#define INGRESS_PARAMETERS inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic, \
    in ingress_intrinsic_metadata_from_parser_t from_parser, \
    inout ingress_intrinsic_metadata_for_deparser_t for_deparser, \
    inout ingress_intrinsic_metadata_for_tm_t for_traffic_manager

#define SWITCH(ParserName, ControlName, DeparserName) \
    Pipeline(ParserName(), ControlName(), DeparserName(), EgressParser(), Egress(), EgressDeparser()) pipe; \
    Switch(pipe) main;

#endif
