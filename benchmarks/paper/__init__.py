"""The paper's experiments reported: tables, figures and verdicts, the paper's figures beside ours."""
