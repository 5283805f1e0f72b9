"""What a broker owns: its records, what they let it serve, and how it and the store agree.

What commands change of it is in `agent.commands`; the lease that it needs is `agent.leasing`.
"""
