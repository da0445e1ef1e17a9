// Elements of the page: those that it has, by their id, and new ones.

export const element = (id) => document.getElementById(id);
export const make = (tag, parts = {}) => Object.assign(document.createElement(tag), parts);
