# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators on arrays and data sets of xarray: `cuplug.ops` hands them on to here."""

from cuplug._integration.frameworks.xarray_call import call_on_labelled as hand_on

__all__ = ["hand_on"]
