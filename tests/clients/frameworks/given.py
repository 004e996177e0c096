"""What each agent of this folder has: its tool, its task, and the URL of its model."""

MODEL = ""  # set before an agent is made
ARGUMENTS = {"query": "stuck"}
task = "Search for the word stuck."


def search(query: str) -> str:
    """Searches for a word.

    Args:
        query: The word.
    """
    return f"found {query}"
