"""What problems are made of: functions, couplings, and shards of them on several processes."""

import saddlepoint.parts.sharded  # noqa: F401 - registers the kinds of A that are in shards
