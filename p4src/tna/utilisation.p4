// How busy a port is: bytes that left by it in the last complete window of 2^n times 1,024 ns, kept per port.

#define WINDOW(n) action number_windows_of_##n() { meta.window = meta.window >> (n - 6); }

struct window_bytes_t {
    bit<32> present;                        // sent in the window that is not over; all ones where they are too many
    bit<32> last;                           // sent in the one before
}

control Utilisation(inout egress_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
                    in egress_intrinsic_metadata_from_parser_t from_parser) {

    bit<32> passed;                         // windows since the one that the port sent its last packet in
    bit<5>  exponent;

    // The window that each port sent its last packet in, counted from when the switch's clock was 0.
    @id(ID_REGISTER_WINDOW)
    Register<bit<32>, PortId_t>(PORTS) window;

    RegisterAction<bit<32>, PortId_t, bit<32>>(window) exchange_window = {
        void apply(inout bit<32> value, out bit<32> begun) {
            begun = value;
            value = meta.window;
        }
    };

    // Bytes sent in that window so far, and in the window before it.
    @id(ID_REGISTER_WINDOW_BYTES)
    Register<window_bytes_t, PortId_t>(PORTS) window_bytes;

    RegisterAction<window_bytes_t, PortId_t, bit<32>>(window_bytes) add_to_window = {
        void apply(inout window_bytes_t value, out bit<32> last) {
            last = value.last;
            value.present = value.present |+| meta.sent_bytes;
        }
    };

    RegisterAction<window_bytes_t, PortId_t, bit<32>>(window_bytes) begin_next_window = {
        void apply(inout window_bytes_t value, out bit<32> last) {
            last = value.present;
            value.last = value.present;
            value.present = meta.sent_bytes;
        }
    };

    // Where windows passed without a packet, nothing was sent in the last of them.
    RegisterAction<window_bytes_t, PortId_t, bit<32>>(window_bytes) begin_after_a_gap = {
        void apply(inout window_bytes_t value, out bit<32> last) {
            last = 0;
            value.last = 0;
            value.present = meta.sent_bytes;
        }
    };

    // Windows last 2^n times 1,024 ns, n from 8 to 20. After a change the first reading is void.
    @id(ID_ACTION_SET_WINDOW)
    action set_window(bit<5> n) {
        exponent = n;
    }

    // No key: the controller may set the default entry, once per switch.
    @id(ID_TABLE_UTILISATION_WINDOW)
    table utilisation_window {
        actions = { set_window; }
        default_action = set_window(14);
        size = 1;
    }

    // The clock in units of 2^6 times 1,024 ns. It begins anew every 78 hours, and so do the numbers of windows.
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) upper_time;

    action read_time() {
        meta.window = upper_time.get({ from_parser.global_tstamp[47:16] });
    }

    // The chip shifts by constants alone.
    WINDOW(8)
    WINDOW(9)
    WINDOW(10)
    WINDOW(11)
    WINDOW(12)
    WINDOW(13)
    WINDOW(14)
    WINDOW(15)
    WINDOW(16)
    WINDOW(17)
    WINDOW(18)
    WINDOW(19)
    WINDOW(20)

    table window_number {
        key = { exponent: exact; }
        actions = {
            number_windows_of_8; number_windows_of_9; number_windows_of_10; number_windows_of_11;
            number_windows_of_12; number_windows_of_13; number_windows_of_14; number_windows_of_15;
            number_windows_of_16; number_windows_of_17; number_windows_of_18; number_windows_of_19;
            number_windows_of_20;
        }
        const default_action = number_windows_of_14();
        size = 16;
        const entries = {
            8: number_windows_of_8();
            9: number_windows_of_9();
            10: number_windows_of_10();
            11: number_windows_of_11();
            12: number_windows_of_12();
            13: number_windows_of_13();
            15: number_windows_of_15();
            16: number_windows_of_16();
            17: number_windows_of_17();
            18: number_windows_of_18();
            19: number_windows_of_19();
            20: number_windows_of_20();
        }
    }

    action count_sent() {
        meta.sent_bytes = meta.sent_bytes + meta.added_sent_bytes;
    }

    action count_passed() {
        passed = meta.window - passed;
    }

    action count_in_present() {
        meta.last_window_bytes = add_to_window.execute(intrinsic.egress_port);
    }

    action count_in_next() {
        meta.last_window_bytes = begin_next_window.execute(intrinsic.egress_port);
    }

    action count_after_a_gap() {
        meta.last_window_bytes = begin_after_a_gap.execute(intrinsic.egress_port);
    }

    table window_step {
        key = { passed: ternary; }
        actions = { count_in_present; count_in_next; count_after_a_gap; }
        size = 4;
        const entries = {
            0: count_in_present();
            1: count_in_next();
            _: count_after_a_gap();
        }
    }

    apply {
        utilisation_window.apply();
        read_time();
        window_number.apply();
        count_sent();
        passed = exchange_window.execute(intrinsic.egress_port);
        count_passed();
        window_step.apply();
    }
}
