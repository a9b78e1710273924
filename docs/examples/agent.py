"""What an agent does with Atelier's tools, with the official Python client of the Model Context Protocol:

    python -m pip install --no-deps -r docs/examples/requirements-agent.txt
    ATELIER_URL=https://… ATELIER_KEY=atl_… python docs/examples/agent.py

Its searches are for the demo. agent-session.txt is what it prints there.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = os.environ.get("ATELIER_URL", "http://127.0.0.1:8080") + "/mcp"
KEY = os.environ.get("ATELIER_KEY")


async def main(mode):
    headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
    async with httpx2.AsyncClient(headers=headers) as http, Client(streamable_http_client(URL, http_client=http), mode=mode) as agent:
        print(agent.server_info.name, "speaks", agent.protocol_version)
        print("tools:", ", ".join(tool.name for tool in (await agent.list_tools()).tools))

        async def ask(tool, **arguments):
            print(">", tool, json.dumps(arguments))
            result = await agent.call_tool(tool, arguments)
            if result.is_error:
                raise SystemExit(result.content[0].text)
            return result.structured_content

        coats = (await ask("search_catalogue", type="coat", where=["colour:navy"], n=2))["items"]
        print([coat["name"] for coat in coats])
        outfit = [coats[0]["id"], None, "a-00259"]
        filters = {"types": {"1": ["trousers"]}}
        [blank] = (await ask("explain", outfit=outfit, customer="c-000010", k=1, filters=filters))["blanks"]
        [best] = blank["suggestions"]
        print(best["article"]["name"], "because of", [reason.get("feature") or reason.get("article") for reason in best["reasons"]])
        looks = (await ask("looks", id=coats[0]["id"], n=1))["looks"]
        print([piece["article"]["type"] for piece in looks[0]["articles"]])
        items = (await ask("similar", id=coats[0]["id"], n=2))["items"]
        print([item["article"]["name"] for item in items])
        scored = await ask("score", outfit=["a-00134", "a-01243", "a-00568", "a-00259"], customer="c-000010")
        print("weakest:", scored["articles"][scored["weakest"]]["article"]["name"])
        columns = (await ask("compare", outfit=outfit, customers=["c-000010", "c-014871"], k=1, filters=filters))["columns"]
        print({column["customer"]: column["suggestions"][0]["article"]["name"] for column in columns})


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "auto"))
