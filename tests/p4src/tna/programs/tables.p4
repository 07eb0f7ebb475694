// Tables of all match kinds, with entries of their own, arguments, hits, misses and the action that has run.

#include "common.p4"

header numbers_t {
    bit<8>  exact_1;
    bit<16> exact_2;
    bit<32> address;
    bit<16> bits;
    bit<8>  selected;
    int<8>  sum;
    bit<16> result;
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
    action set_result(bit<16> value) {
        hdr.numbers.result = value;
    }

    action add_to_result(bit<16> value, bit<9> port) {
        hdr.numbers.result = hdr.numbers.result |+| value;
        for_traffic_manager.ucast_egress_port = port;
    }

    action subtract_from_sum(int<8> value) {
        hdr.numbers.sum = hdr.numbers.sum |-| value;
    }

    action drop() {
        for_deparser.drop_ctl = 1;
    }

    action swap() {
        bit<48> source = hdr.ethernet.source;
        hdr.ethernet.source = hdr.ethernet.destination;
        hdr.ethernet.destination = source;
    }

    table exacts {
        key = {
            hdr.numbers.exact_1: exact @name("exact_1");
            hdr.numbers.exact_2: exact @name("exact_2");
        }
        actions = { set_result; drop; }
        default_action = set_result(0x1111);
        size = 64;
    }

    table prefixes {
        key = { hdr.numbers.address: lpm @name("address"); }
        actions = { add_to_result; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    table ternaries {
        key = {
            hdr.numbers.bits: ternary @name("bits");
            hdr.numbers.exact_1: ternary @name("exact_1");
        }
        actions = { add_to_result; swap; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    table constants {
        key = {
            hdr.numbers.selected: ternary @name("selected");
            hdr.numbers.bits[3:0]: exact @name("low_bits");
        }
        actions = { subtract_from_sum; swap; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (0x10 &&& 0xF0, 1): subtract_from_sum(100);
            (0x12, 1): swap();
            (0x12, 2): swap();
            (_, 3): subtract_from_sum(-100);
        }
        size = 8;
    }

    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        exacts.apply();
        if (!prefixes.apply().hit) {
            hdr.numbers.exact_2 = 0xFFFF;
        }
        switch (ternaries.apply().action_run) {
            add_to_result: { hdr.numbers.exact_1 = 1; }
            swap: { hdr.numbers.exact_1 = 2; }
            default: { hdr.numbers.exact_1 = 3; }
        }
        constants.apply();
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)
