# Stands in for the script of a real playbook, which lies elsewhere.
def main(name, count):
    return {
        "status": "success",
        "script_source": "file",
        "total_greetings": count,
        "messages": [f"Hello, {name}! (Greeting #{i})" for i in range(1, count + 1)],
    }
