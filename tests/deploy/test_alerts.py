"""The alert rules and configurations of Prometheus are right, and every alert fires when it should, and only then."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.prometheus import FOLDER, promtool

_HEALTHY = {
    'up{job="trainyard"}': "1x80",
    'trainyard_is_leader{job="trainyard", instance="a"}': "1x80",
    'trainyard_is_leader{job="trainyard", instance="b"}': "0x80",
    'trainyard_switch_condition{switch="t0", condition="caught up"}': "1x80",
    'trainyard_switch_drifted_entries_total{switch="t0"}': "7x80",
    'trainyard_cables{state="used"}': "5x80",
    'trainyard_cables{state="drained"}': "1x80",
    "trainyard_cut_off_flows": "0x80",
    'trainyard_plans_total{outcome="made"}': "0+1x80",
    'trainyard_plans_total{outcome="failed"}': "3x80",
    'trainyard_planning_duration_seconds_bucket{phase="decide", le="1"}': "0+1x80",
    'trainyard_planning_duration_seconds_bucket{phase="decide", le="30"}': "0+1x80",
    'trainyard_planning_duration_seconds_bucket{phase="decide", le="+Inf"}': "0+1x80",
    'trainyard_event_loop_lag_seconds_bucket{le="0.05"}': "0+1000x80",
    'trainyard_event_loop_lag_seconds_bucket{le="1.0"}': "0+1000x80",
    'trainyard_event_loop_lag_seconds_bucket{le="+Inf"}': "0+1000x80",
    "trainyard_planning_paused": "0x80",
    "trainyard_database_up": "1x80",
    "trainyard_plan_number": "0+1x80",
    "trainyard_recorded_plan_number": "0+1x80",
    "trainyard_audit_lost_entries_total": "0x80",
    'trainyard_calls_total{tenant="vision", status="OK"}': "0+900x80",
    'trainyard_calls_total{tenant="vision", status="PERMISSION_DENIED"}': "0+3x80",
}
"""Series of a controller that is well, for 80 intervals of 15 seconds."""

_TROUBLE: dict[str, dict[str, str]] = {
    "TrainyardControllerDown": {'up{job="trainyard"}': "0x80"},
    "TrainyardNobodyLeads": {'trainyard_is_leader{job="trainyard", instance="a"}': "0x80"},
    "TrainyardSeveralLead": {'trainyard_is_leader{job="trainyard", instance="b"}': "1x80"},
    "TrainyardSwitchLost": {'trainyard_switch_condition{switch="t1", condition="away"}': "1x80"},
    "TrainyardSwitchBehind": {'trainyard_switch_condition{switch="t1", condition="behind"}': "1x80"},
    "TrainyardDrift": {'trainyard_switch_drifted_entries_total{switch="t0"}': "0x60 7x20"},
    "TrainyardCablesNotUsed": {'trainyard_cables{state="down"}': "2x80"},
    "TrainyardFlowsCutOff": {"trainyard_cut_off_flows": "4x80"},
    "TrainyardPlansFail": {'trainyard_plans_total{outcome="failed"}': "3x60 4x20"},
    "TrainyardPlanningPaused": {"trainyard_planning_paused": "1x80"},
    "TrainyardPlanningSlow": {'trainyard_planning_duration_seconds_bucket{phase="decide", le="1"}': "0x80"},
    "TrainyardLoopLate": {'trainyard_event_loop_lag_seconds_bucket{le="0.05"}': "0+900x80"},
    "TrainyardDatabaseDown": {"trainyard_database_up": "0x80"},
    "TrainyardRecordBehind": {"trainyard_recorded_plan_number": "0x80"},
    "TrainyardAuditLost": {"trainyard_audit_lost_entries_total": "0+1x80"},
    "TrainyardCallsRefused": {'trainyard_calls_total{tenant="vision", status="PERMISSION_DENIED"}': "0+60x80"},
}


def _case(changed: dict[str, str], alerts: list[str]) -> dict[str, Any]:
    firing = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    return {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in (_HEALTHY | changed).items()],
        "promql_expr_test": [{"expr": expression, "eval_time": "19m", "exp_samples": firing}],
    }


def test_every_alert_fires_in_its_trouble_alone(tmp_path: Path) -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == set(_TROUBLE)
    cases = {
        "rule_files": [str(FOLDER / "alerts.yml")],
        "evaluation_interval": "15s",
        "tests": [_case({}, []), *(_case(changed, [alert]) for alert, changed in _TROUBLE.items())],
    }
    (tmp_path / "cases.yml").write_text(yaml.safe_dump(cases))
    promtool("test", "rules", tmp_path / "cases.yml")


@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-token.yml"])
def test_configurations_are_right(name: str) -> None:
    promtool("check", "config", "--syntax-only", FOLDER / name)


def test_rules_are_right() -> None:
    promtool("check", "rules", FOLDER / "alerts.yml")
