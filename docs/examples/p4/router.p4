// A small IPv4 router for v1model, to try the emulator with: docs/emulator.md and docs/test-p4-programs.md.

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  header_length;
    bit<8>  service;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct metadata_t { }

struct sender_t {
    bit<48> mac;
    bit<9>  port;
}

parser parse(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(headers.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control verify_checksums(inout headers_t headers, inout metadata_t metadata) {
    apply { }
}

control ingress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) routed;
    counter(512, CounterType.packets) received;
    register<bit<32>>(512) last_source;

    action drop() {
        mark_to_drop(standard);
    }

    action forward(bit<48> next_hop, bit<9> port) {
        routed.count();
        headers.ethernet.source = headers.ethernet.destination;
        headers.ethernet.destination = next_hop;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
        standard.egress_spec = port;
    }

    action count_drop() {
        routed.count();
        mark_to_drop(standard);
    }

    action flood(bit<16> group) {
        standard.mcast_grp = group;
    }

    action tell_controller() {
        headers.packet_in.setValid();
        headers.packet_in.ingress_port = (bit<16>) standard.ingress_port;
        standard.egress_spec = CPU_PORT;
    }

    action learn() {
        digest<sender_t>(1, { headers.ethernet.source, standard.ingress_port });
    }

    table senders {
        key = { headers.ethernet.source: exact; }
        actions = { NoAction; learn; }
        default_action = learn();
        size = 1024;
    }

    table access {
        key = {
            headers.ipv4.source: ternary;
            headers.ipv4.protocol: ternary;
        }
        actions = { NoAction; drop; tell_controller; }
        default_action = NoAction();
        size = 256;
    }

    table routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { forward; flood; count_drop; }
        default_action = count_drop();
        counters = routed;
        size = 1024;
    }

    apply {
        if (headers.packet_out.isValid()) {
            standard.egress_spec = (bit<9>) headers.packet_out.egress_port;
            headers.packet_out.setInvalid();
            exit;
        }
        received.count((bit<32>) standard.ingress_port);
        senders.apply();
        if (!headers.ipv4.isValid() || headers.ipv4.ttl <= 1) {
            drop();
            exit;
        }
        last_source.write((bit<32>) standard.ingress_port, headers.ipv4.source);
        switch (access.apply().action_run) {
            NoAction: { routes.apply(); }
        }
    }
}

control egress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply { }
}

control update_checksums(inout headers_t headers, inout metadata_t metadata) {
    apply {
        update_checksum(
            headers.ipv4.isValid(),
            {
                headers.ipv4.version, headers.ipv4.header_length, headers.ipv4.service, headers.ipv4.total_length,
                headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.fragment_offset, headers.ipv4.ttl,
                headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination
            },
            headers.ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control deparse(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.packet_in);
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
    }
}

V1Switch(parse(), verify_checksums(), ingress(), egress(), update_checksums(), deparse()) main;
