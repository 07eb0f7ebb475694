// Ingress: which way a packet leaves, and in which of the port's eight queues it waits.
//
//   controller ──────────────────────────────────────────────────► the port it names
//   ARP, LLDP ─► not too many from the port? ────────────────────► controller
//   IPv4 ─► probe? ─► level and way: port, level, flow or job ─► routing, unless flow chose ─► next_hop ─► queue
//
// What is neither, or gets lost on the way, is dropped and counted by reason; nothing is flooded.

#include "probe.p4"
#include "classification.p4"
#include "hash_boxes.p4"
#include "routing.p4"
#include "queueing.p4"

control ingress(inout ingress_headers_t hdr, inout ingress_metadata_t meta,
                in ingress_intrinsic_metadata_t intrinsic, in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t for_traffic_manager) {

    // The name makes the tables inside `ingress.flow` and so on, wherever the source keeps them.
    @name(".ingress") ProbeRecognition() probe_recognition;
    @name(".ingress") Classification() classification;
    @name(".ingress") Routing() routing;
    @name(".ingress") Queueing() queueing;

    // Packets and bytes dropped, by reason: indexes DROP_... of shared/constants.p4.
    @id(ID_COUNTER_DROP)
    Counter<bit<64>, drop_reason_t>(DROP_COUNTER_SIZE, CounterType_t.PACKETS_AND_BYTES) drop_counter;

    // Packets for the controller, by ingress port: above its peak rate a port's are dropped, so that a flood from one
    // leaves room for the others'. Without rates all pass.
    @id(ID_METER_PACKET_IN)
    Meter<PortId_t>(PORTS, MeterType_t.PACKETS) packet_in_meter;

    action count_and_drop() {
        drop_counter.count(meta.drop_reason, FCS_BYTES);
        for_deparser.drop_ctl = 1;
    }

    action send_as_controller_says() {
        for_traffic_manager.ucast_egress_port = hdr.packet_out.egress_port;
        for_traffic_manager.qid = (QueueId_t) CONTROL_LEVEL;
        hdr.packet_out.setInvalid();
        hdr.bridged.is_opaque = 1;
        meta.level = CONTROL_LEVEL;
    }

    action send_to_controller() {
        hdr.packet_in.setValid();
        hdr.packet_in.padding = 0;
        for_traffic_manager.ucast_egress_port = TOFINO_CPU_PORT;
        for_traffic_manager.qid = (QueueId_t) CONTROL_LEVEL;
        hdr.bridged.is_opaque = 1;
        meta.level = CONTROL_LEVEL;
    }

    // The hash unit moves bits to any place, which the arithmetic units do not.
    Hash<bit<9>>(HashAlgorithm_t.IDENTITY) packet_in_port;
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) bridged_port;

    action tell_ingress_port() {
        hdr.packet_in.ingress_port = packet_in_port.get({ intrinsic.ingress_port });
    }

    action bridge() {
        hdr.bridged.ingress_port = bridged_port.get({ 7w0, intrinsic.ingress_port });
        hdr.bridged.ingress_time_ns = from_parser.global_tstamp;
    }

    apply {
        bridge();
        if (from_parser.parser_err != 0) {
            meta.drop_reason = DROP_MALFORMED;
        } else if (hdr.ipv4.isValid()) {
            if (meta.has_wrong_checksum) {
                meta.drop_reason = DROP_CHECKSUM;
            } else if (hdr.ipv4.time_to_live <= 1) {
                meta.drop_reason = DROP_TIME_TO_LIVE;
            } else {
                probe_recognition.apply(hdr, meta, intrinsic);
                classification.apply(hdr, meta, intrinsic);
                routing.apply(hdr, meta, for_traffic_manager);
                queueing.apply(hdr, meta, for_traffic_manager);
            }
        } else if (hdr.packet_out.isValid()) {
            send_as_controller_says();
        } else if (!hdr.ethernet.isValid() || hdr.ethernet.ether_type == ETHER_TYPE_IPV4) {
            meta.drop_reason = DROP_MALFORMED;
        } else if (hdr.ethernet.ether_type == ETHER_TYPE_ARP || hdr.ethernet.ether_type == ETHER_TYPE_LLDP) {
            bit<8> colour = packet_in_meter.execute(intrinsic.ingress_port);
            if (colour == METER_COLOUR_RED) {
                meta.drop_reason = DROP_PACKET_IN;
            } else {
                send_to_controller();
                tell_ingress_port();
            }
        } else {
            meta.drop_reason = DROP_ETHER_TYPE;
        }
        hdr.bridged.level = meta.level;
        if (meta.drop_reason != DROP_NOTHING) {
            count_and_drop();
        }
    }
}
