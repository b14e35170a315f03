"""Run model-written code and judge it by tests, in processes that cannot forge the verdict."""

from rlvr.sandbox.extract import ExtractionPolicy, extract_code
from rlvr.sandbox.pool import Pool, shared_pool
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
    "Job",
    "JobResult",
    "Limits",
    "Pool",
    "ScriptTests",
    "Status",
    "StdioTest",
    "TestResult",
    "extract_code",
    "job_from_reference",
    "shared_pool",
]
