// Counts clicks, and tells the console about each.
const count = document.getElementById('count');

document.getElementById('more').addEventListener('click', () => {
  count.value = Number(count.value) + 1;
  console.log(`clicked ${count.value} times`);
});

console.log('the page is ready');
