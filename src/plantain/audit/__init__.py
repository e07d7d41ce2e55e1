"""How far a judge can be trusted: clean edits, planted defects, and the rates at which it tells them apart."""

from plantain.audit.rates import AuditReport, report_of
from plantain.audit.run import AuditPlan, run_audit

__all__ = ["AuditPlan", "AuditReport", "report_of", "run_audit"]
"""`run_audit` asks a judge about every clean and spoilt edit of a plan; `report_of` turns the answers into rates."""
