# SPDX-License-Identifier: Apache-2.0
"""Stories: each function is one, and each file is about one kind of peer or trouble."""
