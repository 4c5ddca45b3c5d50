"""Rank 0 listens; every other rank sends it a line and reads the answer."""

import os
import socket
import time

PORT = 29_500

rank = int(os.environ["PERDURE_NODE_RANK"])
nodes = int(os.environ["PERDURE_NODES_NUM"])
master = os.environ["PERDURE_MASTER_NODE_IP"]


def listen():
    with socket.create_server((master, PORT)) as server:
        print(f"rank 0 of {nodes} listens at {master}:{PORT}", flush=True)
        for _ in range(nodes - 1):
            connection, (address, _) = server.accept()
            with connection, connection.makefile("rw") as line:
                print(f"from {address}: {line.readline().strip()}", flush=True)
                print("welcome", file=line, flush=True)


def greet():
    deadline = time.monotonic() + 30
    while True:
        try:
            connection = socket.create_connection((master, PORT), timeout=5)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with connection, connection.makefile("rw") as line:
        print(f"rank {rank} says hello", file=line, flush=True)
        print(f"rank {rank} hears: {line.readline().strip()}", flush=True)


if rank == 0:
    listen()
else:
    greet()
