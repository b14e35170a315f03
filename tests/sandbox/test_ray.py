"""Workers on a Ray cluster of two nodes, one of which is killed in the middle."""

import sys
import threading
import time

import pytest

from rlvr.errors import InfrastructureError, UsageError
from rlvr.sandbox import CallTest, Job, ScriptTests
from rlvr.sandbox.ray_pool import RayPool

SLOW = "import time\ndef solve(x):\n    time.sleep(0.03)\n    return x * x"
WRONG = "import time\ndef solve(x):\n    time.sleep(0.03)\n    return x + x + 1"


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"rlvr\[ray\]"):
        RayPool(1)


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_dies_costs_no_verdict() -> None:
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        jobs = [
            Job(WRONG if n % 5 == 0 else SLOW, [CallTest((n,), {}, n * n)], "solve")
            if n % 2
            else Job(SLOW, ScriptTests(f"assert solve({n}) == {n * n}", "solve"))
            for n in range(300)
        ]
        wanted = ["wrong" if n % 2 and n % 5 == 0 else "pass" for n in range(300)]
        with RayPool(2, 1) as pool:
            found: list[str] = []
            thread = threading.Thread(target=lambda: found.extend(one.status.value for one in pool.run(jobs)))
            thread.start()
            time.sleep(4)
            assert thread.is_alive()
            cluster.remove_node(second, allow_graceful=False)
            thread.join(200)
            assert found == wanted
            assert pool.lost >= 1
        with pytest.raises(InfrastructureError, match="no_such_module"):
            RayPool(1, 1, preload=("no_such_module",))
    finally:
        ray.shutdown()
        cluster.shutdown()
