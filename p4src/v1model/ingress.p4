// Ingress: which way a packet leaves, and in which of the port's eight queues it waits.
//
//   controller ──────────────────────────────────────────────────► the port it names
//   ARP, LLDP ─► not too many from the port? ────────────────────► controller
//   IPv4 ─► probe? ─► level and way: port, level, flow or job ─► routing, unless flow chose ─► next_hop ─► queue
//
// What is neither, or gets lost on the way, is dropped and counted by reason; nothing is flooded.

#include "probe.p4"
#include "classification.p4"
#include "routing.p4"
#include "queueing.p4"

control ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {

    // The name makes the tables inside `ingress.flow` and so on, wherever the source keeps them.
    @name(".ingress") ProbeRecognition() probe_recognition;
    @name(".ingress") Classification() classification;
    @name(".ingress") Routing() routing;
    @name(".ingress") Queueing() queueing;

    // Packets and bytes dropped, by reason: indexes DROP_... of shared/constants.p4.
    @id(ID_COUNTER_DROP)
    counter(DROP_COUNTER_SIZE, CounterType.packets_and_bytes) drop_counter;

    // Packets for the controller, by ingress port: above its peak rate a port's are dropped, so that a flood from one
    // leaves room for the others'. Without rates all pass.
    @id(ID_METER_PACKET_IN)
    meter(PORTS, MeterType.packets) packet_in_meter;

    action count_and_drop() {
        drop_counter.count((bit<32>) meta.drop_reason);
        mark_to_drop(standard_metadata);
    }

    action send_as_controller_says() {
        standard_metadata.egress_spec = hdr.packet_out.egress_port;
        standard_metadata.priority = CONTROL_LEVEL;
        meta.level = CONTROL_LEVEL;
    }

    action send_to_controller() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.padding = 0;
        standard_metadata.egress_spec = CPU_PORT;
        standard_metadata.priority = CONTROL_LEVEL;
        meta.level = CONTROL_LEVEL;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (standard_metadata.checksum_error == 1) {
                meta.drop_reason = DROP_CHECKSUM;
            } else if (hdr.ipv4.time_to_live <= 1) {
                meta.drop_reason = DROP_TIME_TO_LIVE;
            } else {
                probe_recognition.apply(hdr, meta, standard_metadata);
                classification.apply(hdr, meta, standard_metadata);
                routing.apply(hdr, meta, standard_metadata);
                queueing.apply(hdr, meta, standard_metadata);
            }
        } else if (hdr.packet_out.isValid()) {
            send_as_controller_says();
        } else if (!hdr.ethernet.isValid() || hdr.ethernet.ether_type == ETHER_TYPE_IPV4) {
            meta.drop_reason = DROP_MALFORMED;
        } else if (hdr.ethernet.ether_type == ETHER_TYPE_ARP || hdr.ethernet.ether_type == ETHER_TYPE_LLDP) {
            bit<2> colour;
            packet_in_meter.execute_meter((bit<32>) standard_metadata.ingress_port, colour);
            if (colour == METER_RED) {
                meta.drop_reason = DROP_PACKET_IN;
            } else {
                send_to_controller();
            }
        } else {
            meta.drop_reason = DROP_ETHER_TYPE;
        }
        if (meta.drop_reason != DROP_NOTHING) {
            count_and_drop();
        }
    }
}
