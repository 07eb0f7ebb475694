/* Indirect and direct meters, of packets and of bytes: their colours are written into a packet's header. */
#include <core.p4>
#include <v1model.p4>

header colours_t {
    bit<16> index;      // of the indirect meters
    bit<8>  key;        // of the tables with direct meters
    bit<8>  packets;
    bit<8>  bytes;
    bit<8>  direct_packets;
    bit<8>  direct_bytes;
    bit<8>  at_egress;
}

struct headers_t {
    colours_t colours;
}

struct metadata_t {
    bit<8> direct_packets;
    bit<8> direct_bytes;
}

parser ColoursParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.colours);
        transition accept;
    }
}

control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Metered(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    meter(8, MeterType.packets) packet_meter;
    meter(8, MeterType.bytes) byte_meter;
    direct_meter<bit<8>>(MeterType.packets) direct_packet_meter;
    direct_meter<bit<8>>(MeterType.bytes) direct_byte_meter;

    action count_packets() {
        direct_packet_meter.read(meta.direct_packets);
    }
    action count_bytes(bit<8> added) {
        direct_byte_meter.read(meta.direct_bytes);
        meta.direct_bytes = meta.direct_bytes + added;
    }
    table by_packets {
        key = { hdr.colours.key: exact; }
        actions = { count_packets; NoAction; }
        meters = direct_packet_meter;
        default_action = NoAction();
    }
    table by_bytes {
        key = { hdr.colours.key: ternary; }
        actions = { count_bytes; NoAction; }
        meters = direct_byte_meter;
        default_action = NoAction();
    }
    apply {
        packet_meter.execute_meter((bit<32>) hdr.colours.index, hdr.colours.packets);
        byte_meter.execute_meter((bit<32>) hdr.colours.index, hdr.colours.bytes);
        by_packets.apply();
        by_bytes.apply();
        hdr.colours.direct_packets = meta.direct_packets;
        hdr.colours.direct_bytes = meta.direct_bytes;
        standard_metadata.egress_spec = 1;
    }
}

control MeteredAtEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    meter(8, MeterType.packets) egress_meter;
    register<bit<32>>(4) seen;
    apply {
        egress_meter.execute_meter((bit<32>) hdr.colours.index, hdr.colours.at_egress);
        bit<32> before;
        seen.read(before, (bit<32>) hdr.colours.index & 3);
        seen.write((bit<32>) hdr.colours.index & 3, before + 1);
    }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ColoursDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.colours);
    }
}

V1Switch(ColoursParser(), NoVerification(), Metered(), MeteredAtEgress(), NoUpdate(), ColoursDeparser()) main;
