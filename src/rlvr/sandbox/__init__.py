"""Run model-written code and judge it by tests, in processes that cannot forge the verdict."""

from rlvr.sandbox.extract import ExtractionPolicy, extract_code
from rlvr.sandbox.isolation import IsolationReport, LayerState, isolation_report
from rlvr.sandbox.pool import Pool, close_shared_pools, shared_pool
from rlvr.sandbox.protocol import (
    CallTest,
    Comparison,
    Job,
    JobResult,
    Limits,
    ScriptTests,
    Status,
    StdioTest,
    TestResult,
)
from rlvr.sandbox.reference import job_from_reference

__all__ = [
    "CallTest",
    "Comparison",
    "ExtractionPolicy",
    "IsolationReport",
    "Job",
    "JobResult",
    "LayerState",
    "Limits",
    "Pool",
    "ScriptTests",
    "Status",
    "StdioTest",
    "TestResult",
    "close_shared_pools",
    "extract_code",
    "isolation_report",
    "job_from_reference",
    "shared_pool",
]
