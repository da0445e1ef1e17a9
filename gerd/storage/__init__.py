"""Recordings to files and back: a dataset in a folder or an object store, made by many workers, resumed and verified.

Configs go in and shards come out (`generate`), or the other way round (`Recordings`). A file is whole or not there;
the bytes do not depend on who wrote them; nothing that is read is unpickled or run.

To write: `generate` hands out shards to processes (`local`) or a cluster (`ray_workers`), where `work` makes each;
`shard`, `content`, `blocks` and `tensors` are its bytes, `places` and `whole` put them down. To read: `recordings`.
"""
